/**
 * A ring and its operator: the real loader decisions over simulated agents. The loader is killed now and then and run again,
 * a ring of which a part stands empty is loaded again, and one that is given up is unloaded until nothing of it stands.
 */
import type { CallId, CallReply } from '../../agent/calls.ts';
import type { Input, Placement } from '../../agent/inputs.ts';
import { present } from '../../protocol/assert.ts';
import type { ErrorCode } from '../../protocol/errors.ts';
import {
  generation,
  loadId,
  sliceId,
  type Generation,
  type HostName,
  type LoadId,
  type RingName,
} from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { Plan } from '../../protocol/plan.ts';
import {
  beginLoad,
  loaderStep,
  type AgentCommand,
  type KeptLoad,
  type LoaderEffect,
  type LoaderInput,
  type LoaderState,
  type LoadName,
} from '../../provisioner/loader-step.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

export interface LoadFacts {
  readonly ring: RingName;
  readonly load: LoadId;
  readonly generation: Generation;
  readonly plan: Plan;
}

/** When the operator does what, besides loading whatever has to stand. */
export interface OperatorScript {
  /** A loader is killed once in so many of its steps; 0 is never. */
  readonly loaderDiesOneIn: number;
  /** Unloaded at this time, and loaded anew after a while; `null` is never. */
  readonly unloadAtMs: number | null;
  /** Unloaded so long after the agent of its head has started again and knows requests whose head has not come up. */
  readonly unloadsHeadlessMs: number | null;
  readonly loadsAnew: boolean;
  /** Each run of the loader says anew where agents are reached. */
  readonly movesAgents: boolean;
}

const headlessLookMs = 20;

const planDigestOf = (plan: Plan): string => `digest of ${plan.ring}`;

export class RingModel {
  readonly plan: Plan;
  readonly hosts: readonly HostName[];
  readonly #world: World;
  readonly #script: OperatorScript;
  /** The generation file. */
  kept: KeptLoad | null = null;
  readonly #wasReady = new Set<LoadId>();
  wanted: 'loaded' | 'unloaded' = 'loaded';
  /** Whether nothing more will be loaded. */
  isOver = false;
  #run: LoaderRun | null = null;
  #isUnloading = false;
  #count = 0;
  #port = 7400;
  /** By host, the port that its agent confirmed last. */
  readonly #portsTold = new Map<HostName, number>();

  constructor(world: World, plan: Plan, script: OperatorScript) {
    this.#world = world;
    this.plan = plan;
    this.#script = script;
    this.hosts = [...new Set(plan.stages.map(({ host }) => host))];
    const { clock } = world;
    if (script.unloadAtMs !== null) {
      clock.after(script.unloadAtMs, () => {
        this.wanted = 'unloaded';
        this.#unload();
      });
    }
    if (script.unloadsHeadlessMs !== null) this.#awaitHeadless();
    this.#look();
  }

  get ring(): RingName {
    return this.plan.ring;
  }

  get headHost(): HostName {
    return present(this.plan.stages[0], 'a plan has stages').host;
  }

  /** What clients know of: a load that was ready once. */
  get current(): KeptLoad | null {
    const isKnown = this.kept !== null && this.#wasReady.has(this.kept.loadId);
    const isStanding = this.kept?.phase === 'ready' || this.kept?.phase === 'loading';
    return this.wanted === 'loaded' && isStanding && isKnown ? this.kept : null;
  }

  get isLoading(): boolean {
    return this.#run !== null;
  }

  /** Every agent has a part of it that is whole. */
  get isWhole(): boolean {
    return this.hosts.every((host) => {
      const ring = this.#world.machine(host).agent?.state.rings.get(this.ring);
      const isReady = ring?.kind === 'live' && ring.generation === this.kept?.generation && ring.suspension === null;
      return isReady && ring.phase.kind === (host === this.headHost ? 'ready' : 'linked');
    });
  }

  keep(kept: KeptLoad): void {
    this.kept = kept;
    if (kept.phase === 'ready') this.#wasReady.add(kept.loadId);
  }

  /** Looks at the ring now and then, as `status` shows it, and does what is to be done. */
  #look(): void {
    const { clock, random } = this.#world;
    clock.after(this.kept === null ? random.between(0, 50) : random.between(500, 3000), () => {
      if (this.wanted === 'unloaded') this.#unload();
      else if (this.#run === null && this.#isAmiss()) this.#load();
      this.#look();
    });
  }

  #awaitHeadless(): void {
    const { clock, plan } = this.#world;
    if (clock.nowMs < plan.calmMs)
      clock.after(headlessLookMs, () => {
        if (!this.#isHeadless) this.#awaitHeadless();
        else
          clock.after(this.#script.unloadsHeadlessMs ?? 0, () => {
            if (this.#isHeadless) {
              this.wanted = 'unloaded';
              // Whoever loads it again waits no longer.
              this.#run?.cancel();
              this.#unload();
            } else this.#awaitHeadless();
          });
      });
  }

  get #isHeadless(): boolean {
    const ring = this.#world.machine(this.headHost).agent?.state.rings.get(this.ring);
    if (ring?.kind !== 'live' || ring.head !== null || ring.phase.kind === 'ending') return false;
    return [...ring.memory.requests.values()].some(({ kind }) => kind !== 'settled');
  }

  #isAmiss(): boolean {
    if (this.kept?.phase !== 'ready') return true;
    return this.hosts.some((host) => {
      const { agent } = this.#world.machine(host);
      const ring = agent?.state.rings.get(this.ring);
      return agent !== null && ring?.kind !== 'live';
    });
  }

  #load(): void {
    // Agents are reached elsewhere than the last time.
    if (this.#script.movesAgents) this.#port++;
    const run = new LoaderRun(this.#world, this, {
      fresh: this.#fresh(),
      diesOneIn: this.#script.loaderDiesOneIn,
      ended: () => {
        this.#run = null;
      },
    });
    this.#run = run;
    run.begin();
  }

  #fresh(): LoadName {
    const number = (this.kept?.generation ?? 1n << 44n) + BigInt(1 + this.#world.random.below(1 << 20));
    const id =
      `${++this.#count}`.padStart(8, '0') + Buffer.from(this.ring).toString('hex').padEnd(24, '0').slice(0, 24);
    return { generation: generation(number.toString()), loadId: loadId(id) };
  }

  #unload(): void {
    const { kept } = this;
    if (this.#run !== null || this.#isUnloading || this.isOver) return;
    if (kept === null || kept.phase === 'unloaded' || kept.phase === 'failed') {
      if (this.#script.loadsAnew) this.wanted = 'loaded';
      else this.isOver = true;
      return;
    }
    // Durable before the first agent lets go: a load that is half taken down is never told again.
    this.kept = { ...kept, phase: 'unloading' };
    this.#isUnloading = true;
    let left = this.hosts.length;
    let isClear = true;
    for (const host of this.hosts) {
      this.command('unload', { host, load: kept }, (failure) => {
        if (failure !== null && failure !== 'RING_UNKNOWN' && failure !== 'GENERATION_MISMATCH') isClear = false;
        left--;
        this.#isUnloading = left > 0;
        if (left === 0 && isClear) this.kept = { ...kept, phase: 'unloaded' };
      });
    }
  }

  /** Tells an agent; `answered` hears the code of a failure. */
  command(command: AgentCommand, { host, load }: CommandTarget, answered: (code: ErrorCode | null) => void): void {
    const { clock } = this.#world;
    const { agent } = this.#world.machine(host);
    let isOpen = true;
    const port = this.#port;
    const answer = (code: ErrorCode | null): void => {
      if (!isOpen) return;
      isOpen = false;
      if (command === 'load' && code === null) this.#portsTold.set(host, port);
      this.#world.guarded(() => {
        answered(code);
      });
    };
    clock.after(command === 'load' ? 60_000 : command === 'probe' ? limits.probeMs : limits.unloadMs, () => {
      answer('AGENT_UNREACHABLE');
    });
    if (agent === null) {
      clock.after(20, () => {
        answer('AGENT_UNREACHABLE');
      });
      return;
    }
    agent.ask(
      (call) => this.input(command, { call, host, load }),
      (reply: CallReply | 'gone') => {
        answer(reply === 'gone' ? 'AGENT_UNREACHABLE' : reply.kind === 'refused' ? reply.error.code : null);
      },
    );
  }

  /** What an agent is told. */
  input(
    command: AgentCommand,
    { call, host, load: name }: { readonly call: CallId; readonly host: HostName; readonly load: LoadName },
  ): Input {
    const { ring, plan } = this;
    const at = { call, ring, generation: name.generation };
    const atMs = this.#world.clock.nowMs;
    const hash = name.generation.toString();
    const standing = this.#world.machine(host).agent?.state.rings.get(ring);
    const digestMatches = standing?.kind === 'claimed' && standing.generationDigest.hash === hash;
    switch (command) {
      case 'load': {
        const placements = placementsOf(plan, this.#port);
        const assignment = JSON.stringify(placements);
        const order = { load: name.loadId, atMs, plan, planDigest: planDigestOf(plan), assignment, placements };
        return { kind: 'load', ...at, ...order, generationDigest: { salt: '', hash }, digestMatches };
      }
      case 'link':
        return { kind: 'link', ...at, atMs };
      case 'probe':
        return { kind: 'probe', ...at, nonce: this.#world.random.below(2 ** 31), atMs };
      case 'unload':
        return { kind: 'unload', ...at, digestMatches };
    }
  }

  /** G6: an agent that took a load dials where it was told last, whatever became of it since. */
  expectDial(from: HostName, port: number): void {
    const told = this.#portsTold.get(from) ?? port;
    if (port < told) throw new Violation('G6', `${from} dials at port ${port}, and was told ${told}`);
  }

  /** G2: what every command of a load rests on. */
  isKept(load: LoadName): boolean {
    return this.kept?.generation === load.generation;
  }
}

interface CommandTarget {
  readonly host: HostName;
  readonly load: LoadName;
}

interface RunOptions {
  readonly fresh: LoadName;
  readonly diesOneIn: number;
  readonly ended: () => void;
}

/** One run of the loader: its shell, until it has finished or is killed. */
class LoaderRun {
  readonly #world: World;
  readonly #ring: RingModel;
  readonly #options: RunOptions;
  /** What was kept before this run. */
  readonly #former: KeptLoad | null;
  #state: LoaderState;
  #isOver = false;

  constructor(world: World, ring: RingModel, options: RunOptions) {
    this.#world = world;
    this.#ring = ring;
    this.#options = options;
    this.#former = ring.kept;
    this.#state = beginLoad({ ring: ring.ring, planDigest: planDigestOf(ring.plan), hosts: ring.hosts });
  }

  begin(): void {
    this.#give({ kind: 'begin', kept: this.#ring.kept, fresh: this.#options.fresh });
  }

  cancel(): void {
    this.#give({ kind: 'cancel', failure: { code: 'CANCELLED', facts: {} } });
  }

  #give(input: LoaderInput): void {
    if (this.#isOver) return;
    const { diesOneIn, ended } = this.#options;
    if (diesOneIn > 0 && this.#world.hasFaults && this.#world.random.oneIn(diesOneIn)) {
      this.#world.trace(() => `loader of ${this.#ring.ring} is killed at ${input.kind}`);
      this.#isOver = true;
      ended();
      return;
    }
    const { state, effects } = loaderStep(this.#state, input);
    this.#world.trace(
      () => `loader of ${this.#ring.ring}: ${brief(input)} -> ${state.kind} ${effects.map(brief).join(', ')}`,
    );
    this.#state = state;
    for (const effect of effects) this.#carryOut(effect);
  }

  #carryOut(effect: LoaderEffect): void {
    switch (effect.kind) {
      case 'restore':
        this.#world.clock.after(this.#world.random.between(1, 10), () => {
          if (this.#isOver) return;
          this.#ring.kept = this.#former;
          this.#give({ kind: 'kept' });
        });
        return;
      case 'keep':
        this.#world.clock.after(this.#world.random.between(1, 10), () => {
          if (this.#isOver) return;
          const { load, phase } = effect;
          const { ring, plan } = this.#ring;
          this.#ring.keep({ ...load, planDigest: planDigestOf(plan), phase });
          this.#world.register({ ring, plan, load: load.loadId, generation: load.generation });
          this.#world.guarded(() => {
            this.#give({ kind: 'kept' });
          });
        });
        return;
      case 'command': {
        const { command, host, load } = effect;
        if (!this.#ring.isKept(load)) throw new Violation('G2', `${command} left before its generation was kept`);
        this.#ring.command(command, { host, load }, (code) => {
          if (code === null) this.#give({ kind: 'done', command, host });
          else this.#give({ kind: 'failed', command, host, failure: { code, facts: {} } });
        });
        return;
      }
      case 'abandon':
        return;
      case 'finish':
        this.#isOver = true;
        this.#options.ended();
    }
  }
}

const brief = (of: {
  readonly kind: string;
  readonly command?: string;
  readonly host?: string;
  readonly phase?: string;
}): string => [of.kind, of.command, of.host, of.phase].filter((word) => word !== undefined).join(' ');

/** Where the stages of a ring lie. */
export const placementsOf = (plan: Plan, port: number): readonly Placement[] =>
  plan.stages.map(({ host }) => ({ sliceId: sliceId('a'.repeat(64)), address: host, port }));
