/**
 * R1, R4, kept account of from outside: a request fails for a loss no sooner than its deadline after the last sign that a
 * stage of its ring loads, and it does fail then; a host of which too many stages ended in one outage gives no such sign.
 *
 * Nothing here asks the clock of a decision: what loads is told by what was started and what became of it, and what the
 * agent of the head has heard from others by its inputs.
 */
import type { Input } from '../../agent/inputs.ts';
import type { ClaimedRing, LiveRing } from '../../agent/state.ts';
import type { HostName, LoadId, RingName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { Plan } from '../../protocol/plan.ts';
import type { AgentModel } from './agent-model.ts';
import type { TakenStep } from './checks.ts';
import { StageWatch } from './stage-watch.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

/** Timers of one moment run one after another. */
const slackMs = 50;
/** Whoever hears of a stage that loads passes it on, and dials who loads again, well within this. */
const newsMs = limits.recoveryRetryMostMs * 3;

/** What the agent of a ring's head can know of one load. */
interface Outage {
  /** When requests could last go on: the ring was ready, or the agent of the head ended. */
  wholeMs: number;
  /** When this process of the agent began to wait: it started, or the ring was loaded again. */
  begunMs: number;
  /** When it last had a sign that a stage of the ring loads. */
  signMs: number;
}

export class DeadlineCheck {
  readonly #world: World;
  readonly #outages = new Map<LoadId, Outage>();
  readonly #stages = new StageWatch();
  /** Timers that run, by host. */
  readonly #timers = new Map<HostName, Set<string>>();
  /** When agents last had to find each other anew. */
  #unrestMs = 0;
  /** When one could last not be reached, or not dial: who waits for its answer, or its journal, then hears nothing. */
  #silenceMs = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** The clock of a deadline begins anew with the agent of the head. */
  agentEnded({ host, state }: AgentModel): void {
    const nowMs = this.#world.clock.nowMs;
    this.#stages.agentEnded(host);
    this.#timers.delete(host);
    for (const { load } of state.rings.values())
      if (this.#headHost(load) === host) this.#outageOf(load).wholeMs = nowMs;
  }

  taken(taken: TakenStep): void {
    const { agent, before, input, step } = taken;
    const nowMs = this.#world.clock.nowMs;
    // Whatever loaded until now is heard of now, before what the step makes of it.
    for (const ring of before.rings.values()) {
      if (ring.kind !== 'live' || this.#headHost(ring.load) !== agent.host) continue;
      const outage = this.#outageOf(ring.load);
      if (ring.phase.kind === 'ready') outage.wholeMs = nowMs;
      if (this.#hasSign(ring, agent.host, input)) outage.signMs = nowMs;
    }
    this.#seeTimers(taken);
    this.#seeBegin(taken);
    this.#seeUnrest(taken);
    this.#ends(taken);
    this.#stages.taken({ host: agent.host, input, step, nowMs });
    for (const ring of step.state.rings.values()) this.#overdue(ring, agent);
  }

  /** What a dialled agent answers: that stages load is said only of stages that do. */
  refused(host: HostName, ring: LiveRing, phase: unknown): void {
    if (phase === 'loading' && !this.#stages.loads(host, ring.load))
      throw new Violation('R1', `${host} says that stages of ${ring.ring} load, and none does that may be hoped for`);
  }

  #hasSign(ring: LiveRing, host: HostName, input: Input): boolean {
    if (this.#stages.loads(host, ring.load)) return true;
    if (this.#stages.givesUp(host, ring.load) || !isOf(input, ring) || ring.phase.kind === 'ending') return false;
    if (input.kind === 'neighbour-loads') return true;
    return input.kind === 'dial-failed' && input.error.facts['phase'] === 'loading';
  }

  /** One timer for an outage: each more would have its readers told again and again. */
  #seeTimers({ agent: { host }, input, step }: TakenStep): void {
    const timers = this.#timers.get(host) ?? new Set();
    this.#timers.set(host, timers);
    if (input.kind === 'recovery-deadline') timers.delete(`${input.load} ${input.suspension}`);
    for (const effect of step.effects) {
      if (effect.kind !== 'await-deadline') continue;
      const timer = `${effect.load} ${effect.suspension}`;
      if (timers.has(timer)) throw new Violation('R4', `the deadline of ${effect.ring} is awaited twice on ${host}`);
      timers.add(timer);
    }
  }

  /** The agent has started, or the ring is loaded again by its loader or its stages. */
  #seeBegin({ agent, before, input, step }: TakenStep): void {
    if (!('ring' in input)) return;
    const [was, is] = [before.rings.get(input.ring), step.state.rings.get(input.ring)];
    const isBegun = input.kind === 'restored' || (was?.kind === 'claimed' && is?.kind === 'live');
    if (is !== undefined && isBegun && this.#headHost(is.load) === agent.host)
      this.#outageOf(is.load).begunMs = this.#world.clock.nowMs;
  }

  #seeUnrest({ input }: TakenStep): void {
    const { machines, network, clock } = this.#world;
    if (unrestful.has(input.kind)) this.#unrestMs = clock.nowMs;
    const isSilent =
      network.isCutAnywhere ||
      machines.some(
        ({ process, stages, journal }) =>
          process?.isListening !== true ||
          process.isStopped ||
          journal.isFailing ||
          stages.some(({ silentForMs }) => silentForMs > 0),
      );
    if (isSilent) this.#silenceMs = clock.nowMs;
  }

  /** R1, R4: a loss fails no request before the deadline. */
  #ends({ agent, before, input, step }: TakenStep): void {
    const nowMs = this.#world.clock.nowMs;
    for (const record of step.records) {
      if (record.kind !== 'request-ended' || record.reason !== 'ring-lost') continue;
      if (input.kind === 'unload' || input.kind === 'forget') continue;
      const { ring, plan } = this.#world.loadNamed(record.load);
      const { wholeMs, signMs } = this.#outageOf(record.load);
      const deadlineMs = plan.deadlineSeconds * 1000;
      const found = `request ${record.request} fails at ${input.kind} on ${agent.host}`;
      const isLate = nowMs - wholeMs >= deadlineMs + limits.reloadMs;
      const waitedMs = nowMs - (isLate ? wholeMs : Math.max(wholeMs, signMs));
      if (Math.ceil(waitedMs) < deadlineMs)
        throw new Violation('R4', `${found} after ${waitedMs} ms without a sign: ${record.detail}`);
      const isLive = before.rings.get(ring)?.kind === 'live';
      if (!isLate && isLive && deadlineMs > newsMs && this.#isLoadingInPeace(record.load, plan))
        throw new Violation('R1', `${found} while a stage loads elsewhere, and nothing keeps the news`);
    }
  }

  /** Whether a stage of another host has loaded for so long that the head has heard of it, and lately again. */
  #isLoadingInPeace(load: LoadId, plan: Plan): boolean {
    const nowMs = this.#world.clock.nowMs;
    const others = plan.stages.map(({ host }) => host).filter((host) => host !== plan.stages[0]?.host);
    const isLiveThere = (host: HostName): boolean => {
      const ring = this.#world.machine(host).agent?.state.rings.get(plan.ring);
      return ring?.kind === 'live' && ring.load === load;
    };
    const isDead = plan.stages.some(({ host }) => this.#stages.givesUp(host, load));
    const peaceMs = Math.min(nowMs - this.#unrestMs, nowMs - this.#silenceMs - limits.linkMs);
    if (peaceMs < newsMs || isDead || !others.every(isLiveThere)) return false;
    return others.some((host) => (this.#stages.loadingSinceMs(host, load) ?? nowMs) < nowMs - newsMs);
  }

  /** R4: no request waits for ever for what does not come. */
  #overdue(ring: LiveRing | ClaimedRing, agent: AgentModel): void {
    const { load } = ring;
    const { clock } = this.#world;
    if (this.#headHost(load) !== agent.host) return;
    if (ring.kind === 'live' && (ring.suspension === null || ring.phase.kind === 'ending')) return;
    const requests = (ring.kind === 'live' ? ring.head : null)?.requests ?? ring.memory.requests;
    const runs = [...requests.values()].find(({ kind }) => kind === 'running');
    if (runs === undefined) return;
    const { wholeMs, begunMs, signMs } = this.#outageOf(load);
    const deadlineMs = this.#world.loadNamed(load).plan.deadlineSeconds * 1000;
    const sinceMs = Math.max(wholeMs, begunMs);
    const untilMs = Math.min(Math.max(sinceMs, signMs) + deadlineMs, sinceMs + limits.reloadMs + 2 * deadlineMs);
    if (clock.nowMs > Math.max(untilMs, agent.resumedAtMs) + slackMs)
      throw new Violation('R4', `request ${runs.id} on ${agent.host} waits beyond its deadline`);
  }

  #headHost(load: LoadId): HostName | undefined {
    return this.#world.loadNamed(load).plan.stages[0]?.host;
  }

  #outageOf(load: LoadId): Outage {
    const known = this.#outages.get(load) ?? { wholeMs: 0, begunMs: 0, signMs: 0 };
    this.#outages.set(load, known);
    return known;
  }
}

/** What makes agents begin to find each other anew. */
const unrestful: ReadonlySet<Input['kind']> = new Set([
  ...(['stage-lost', 'link-lost', 'load', 'unload', 'restored', 'adopted', 'probe-timeout'] as const),
]);

const isOf = (input: Input, { ring, load }: { readonly ring: RingName; readonly load: LoadId }): boolean =>
  'ring' in input && input.ring === ring && 'load' in input && input.load === load;
