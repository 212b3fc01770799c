/**
 * Agents, a disk and loaders that die, for the simulation of what the loader leaves behind: everything that happens is a
 * message, delivered in an order that a seed chooses. The agents' and the loader's decisions are those of production.
 */
import type { CallId, CallReply } from '../../agent/calls.ts';
import type { Effect } from '../../agent/effects.ts';
import type { Input } from '../../agent/inputs.ts';
import type { AgentState, LiveRing } from '../../agent/state.ts';
import { edgeFault } from '../../agent/step-link.ts';
import { step } from '../../agent/step.ts';
import { P4Error } from '../../protocol/errors.ts';
import { noStep } from '../../protocol/hop-frame.ts';
import { loadId, sliceId, type Generation, type HostName, type NodeIndex } from '../../protocol/ids.ts';
import type { Plan } from '../../protocol/plan.ts';
import { failureOf, type Failure } from '../../provisioner/failure.ts';
import type { AgentCommand, KeptLoad, LoadName } from '../../provisioner/loader-step.ts';

interface Message {
  /** The process of the operator that waits for it: with that it is gone. `null`: it is on its way by itself. */
  readonly of: OperatorProcess | null;
  /** Timers come when nothing else does. */
  readonly isTimer: boolean;
  readonly run: () => void;
}

/** `load` or `unload` as a process: it counts what happens to it, and dies where it was told to. */
export class OperatorProcess {
  isAlive = true;
  /** What has happened to it so far. */
  moments = 0;
  readonly #diesAt: number;

  constructor(diesAt: number) {
    this.#diesAt = diesAt;
  }

  /** @returns whether it still lives */
  lives(): boolean {
    if (!this.isAlive) return false;
    this.moments += 1;
    this.isAlive = this.moments < this.#diesAt;
    return this.isAlive;
  }
}

const vocabulary = { size: 100, piece: () => Buffer.from('x'), endsGeneration: () => false };

export class LoaderWorld {
  /** The generation file: what is in it is durable. */
  file: KeptLoad | null = null;
  readonly plan: Plan;
  readonly random: () => number;
  /** A stage that does not come up. */
  badNode: NodeIndex | null = null;
  /** How many of the commands, and of their answers, get lost; the loader hears of that. */
  lossRate = 0;
  readonly #agents = new Map<HostName, AgentState>();
  readonly #calls = new Map<CallId, (reply: CallReply) => void>();
  /** Incarnations of stages that run, by host. */
  readonly #stages = new Map<HostName, Set<number>>();
  readonly #messages: Message[] = [];
  #nextCall = 1;
  #timers = 0;

  constructor(plan: Plan, random: () => number) {
    this.plan = plan;
    this.random = random;
    for (const host of this.hosts) {
      this.#agents.set(host, { host, rings: new Map(), nextIncarnation: 1, nextSuspension: 1 });
      this.#stages.set(host, new Set());
    }
  }

  get hosts(): readonly HostName[] {
    return [...new Set(this.plan.stages.map(({ host }) => host))];
  }

  /** What each host has of the ring; `null` where it has not even its name. */
  get parts(): readonly (LiveRing | null)[] {
    return [...this.#agents.values()].map(({ rings }) => {
      const ring = rings.get(this.plan.ring);
      return ring?.kind === 'live' ? ring : null;
    });
  }

  get stagesRunning(): number {
    return [...this.#stages.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Later, unless `of` has died by then. */
  send(of: OperatorProcess | null, run: () => void): void {
    this.#messages.push({ of, isTimer: false, run });
  }

  /** A command on its way to its agent: it may or may not have left when its sender dies. */
  command(from: OperatorProcess, command: AgentCommand, to: CommandTo): void {
    const answer = (reply: CallReply): void => {
      this.send(from, () => {
        to.answered(reply.kind === 'refused' ? failureOf(reply.error) : null);
      });
    };
    const call = this.#nextCall++ as CallId;
    const lost = (): void => {
      answer({ kind: 'refused', error: new P4Error('AGENT_UNREACHABLE', { host: to.host }) });
    };
    const isLost = this.random() < this.lossRate;
    this.send(null, () => {
      if (!from.isAlive && this.random() < 0.5) return;
      if (isLost && this.random() < 0.5) {
        lost();
        return;
      }
      this.#calls.set(call, isLost ? lost : answer);
      this.#give(to.host, this.#inputOf(command, to.load, call));
    });
  }

  /** Delivers messages until none is left. */
  settle(): void {
    for (let count = 0; count < 20_000; count += 1) {
      const message = this.#next();
      if (message === null) return;
      if (message.of?.isAlive !== false) message.run();
    }
    throw new Error('it does not come to rest');
  }

  #next(): Message | null {
    const ready = this.#messages.filter(({ isTimer }) => !isTimer);
    // A ring that cannot come back tries for ever.
    const from = ready.length > 0 ? ready : this.#timers < 40 ? this.#messages : [];
    const message = from[Math.floor(this.random() * from.length)];
    if (message === undefined) return null;
    this.#timers = message.isTimer ? this.#timers + 1 : this.#timers;
    this.#messages.splice(this.#messages.indexOf(message), 1);
    return message;
  }

  /** A new process of the operator: whatever tried for ever has had its time. */
  begin(diesAt: number): OperatorProcess {
    this.#timers = 0;
    return new OperatorProcess(diesAt);
  }

  #give(host: HostName, input: Input): void {
    const state = this.#agents.get(host);
    if (state === undefined) throw new Error(`no agent ${host}`);
    const next = step(state, input);
    this.#agents.set(host, next.state);
    for (const effect of next.effects) this.#run(host, effect);
  }

  #later(host: HostName, input: Input, isTimer = false): void {
    this.#messages.push({
      ...{ of: null, isTimer },
      run: () => {
        this.#give(host, input);
      },
    });
  }

  #inputOf(command: AgentCommand, { generation, loadId: load }: LoadName, call: CallId): Input {
    const { plan } = this;
    const at = { call, ring: plan.ring, generation };
    switch (command) {
      case 'load':
        return {
          ...{ kind: 'load', ...at, load, plan, planDigest: 'a'.repeat(64), assignment: '{}', atMs: 0 },
          placements: plan.stages.map(() => ({ sliceId: sliceId('a'.repeat(64)), address: '127.0.0.1', port: 7400 })),
          ...{ generationDigest: { salt: '', hash: '' }, digestMatches: false },
        };
      case 'link':
        return { kind: 'link', ...at, atMs: 0 };
      case 'probe':
        return { kind: 'probe', ...at, nonce: call, atMs: 0 };
      case 'unload':
        return { kind: 'unload', ...at, digestMatches: false };
    }
  }

  #run(host: HostName, effect: Effect): void {
    const { kind } = effect;
    if (kind === 'reply') {
      const answer = this.#calls.get(effect.call);
      this.#calls.delete(effect.call);
      answer?.(effect.reply);
    } else if (kind === 'start-stage' || kind === 'attach-stage' || kind === 'stop-stage')
      this.#moveStage(host, effect);
    else if (kind === 'send-frame') this.#goRound(host, effect);
    else this.#runOnRing(host, effect);
  }

  #runOnRing(host: HostName, effect: Exclude<Effect, StageEffect | { kind: 'reply' | 'send-frame' }>): void {
    switch (effect.kind) {
      case 'dial-links':
        for (const edge of effect.edges) this.#dial(host, effect, edge);
        return;
      case 'cut-ring':
        this.#cut(host, effect);
        return;
      case 'await-retry': {
        const { ring, load, suspension, attempt } = effect;
        this.#later(host, { kind: 'retry', ring, load, suspension, attempt, atMs: 0 }, true);
        return;
      }
      // Deadlines, readers and leases: nobody asks anything of these rings, and no probe is lost.
      case 'tell-loading':
      case 'await-probe':
      case 'await-deadline':
      case 'await-lease':
      case 'end-lease':
      case 'serve-queue':
      case 'publish-begin':
      case 'publish-token':
      case 'publish-end':
      case 'publish-pause':
      case 'publish-resume':
        return;
    }
  }

  #moveStage(host: HostName, effect: StageEffect): void {
    const stages = this.#stages.get(host) ?? new Set();
    switch (effect.kind) {
      case 'start-stage':
        stages.add(effect.incarnation);
        this.#stageUp(host, { ...effect.order, incarnation: effect.incarnation });
        return;
      case 'attach-stage':
        this.#stageUp(host, effect);
        return;
      case 'stop-stage': {
        const { ring, load, node, incarnation } = effect;
        this.send(null, () => {
          stages.delete(incarnation);
          this.#give(host, { kind: 'stage-stopped', ring, load, node, incarnation });
        });
        return;
      }
    }
  }

  #stageUp(host: HostName, of: StageOf): void {
    const { ring, load, node, incarnation } = of;
    const at = { ring, load, node, incarnation };
    this.send(null, () => {
      if (node === this.badNode) {
        this.#stages.get(host)?.delete(incarnation);
        this.#give(host, { kind: 'stage-lost', ...at, error: new P4Error('STAGE_LOST', { node, host }), atMs: 0 });
        return;
      }
      const known = node === 0 ? vocabulary : null;
      this.#give(host, {
        kind: 'stage-loaded',
        ...at,
        pid: incarnation,
        vocabulary: known,
        keepsPrefixes: true,
        atMs: 0,
      });
    });
  }

  /** As the receiver's agent answers a dial (A3). */
  #dial(host: HostName, { ring, load }: LoadOf, edge: Edge): void {
    this.send(null, () => {
      const receiver = this.#agents.get(edge.host);
      if (receiver === undefined) throw new Error('an edge leads to an agent');
      const fault = edgeFault(receiver, edge, host);
      const link = { ...edge, peer: edge.host };
      if (fault === null) this.#give(host, { kind: 'link-up', ring, load, link, atMs: 0 });
      else this.#give(host, { kind: 'dial-failed', ring, load, source: edge.source, error: fault, atMs: 0 });
    });
  }

  /** The neighbours' links to this host end with its own. */
  #cut(host: HostName, { ring, load, error }: LoadOf & { readonly error: P4Error }): void {
    for (const other of this.hosts) {
      if (other !== host) this.#later(other, { kind: 'link-lost', ring, load, error, atMs: 0 });
    }
  }

  #goRound(host: HostName, { ring, load, items }: Extract<Effect, { kind: 'send-frame' }>): void {
    this.#later(host, { kind: 'frame-finished', ring, load });
    this.#later(host, { kind: 'returned', ring, load, items, slowest: noStep, atMs: 1 });
  }
}

export interface CommandTo {
  readonly host: HostName;
  readonly load: LoadName;
  /** `null`: it is done. */
  readonly answered: (failure: Failure | null) => void;
}

type StageEffect = Extract<Effect, { kind: 'start-stage' | 'attach-stage' | 'stop-stage' }>;
type LoadOf = Pick<Extract<Effect, { kind: 'dial-links' }>, 'ring' | 'load'>;
type Edge = Extract<Effect, { kind: 'dial-links' }>['edges'][number];
type StageOf = LoadOf & { readonly node: NodeIndex; readonly incarnation: number };

/** Names for loads, each greater than the one before. */
export const freshName = (former: Generation | null, number: number): LoadName => ({
  generation: ((former ?? 17592186044416n) + 1n) as Generation,
  loadId: loadId(number.toString(16).padStart(32, '0')),
});

/** mulberry32: the same numbers for the same seed. */
export function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
