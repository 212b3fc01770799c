/**
 * What the loader decides while it loads one ring: a pure function, so that a simulation can run it against agents.
 *
 * - G1, G2: nothing is sent before the generation is durable: the first effect is always `keep`, and commands follow its
 *   answer only.
 * - G6: a load that was kept before and has the same plan is told again under its own generation. What stood before
 *   this call is never taken down by it: only a load that began here is withdrawn when it fails.
 * - A load that no agent took leaves no generation behind: its file says again what it said before.
 * - A3: a ring is ready when every agent has loaded, then every agent has linked, then the probe has gone round.
 * - Exactly one `finish`, and it is the last effect.
 */
import { unreachable } from '../protocol/assert.ts';
import type { ErrorCode } from '../protocol/errors.ts';
import type { Generation, HostName, LoadId, RingName } from '../protocol/ids.ts';
import type { Failure } from './failure.ts';
import { withdrawalStep, type Withdrawal, type WithdrawalNews } from './loader-withdrawal.ts';

/** What is to be loaded: the ring's agents once each, in ring order; the first one has the head. */
export interface LoadOrder {
  readonly ring: RingName;
  readonly planDigest: string;
  readonly hosts: readonly HostName[];
}

/** How far a kept load has come, as its generation file says. */
export const keptPhases = ['loading', 'ready', 'failed', 'unloading', 'unloaded'] as const;
export type KeptPhase = (typeof keptPhases)[number];

export interface LoadName {
  readonly generation: Generation;
  readonly loadId: LoadId;
}

export interface KeptLoad extends LoadName {
  readonly planDigest: string;
  readonly phase: KeptPhase;
}

export type AgentCommand = 'load' | 'link' | 'probe' | 'unload';

export type LoaderInput =
  /** `fresh` is used where `kept` cannot be told again. */
  | { readonly kind: 'begin'; readonly kept: KeptLoad | null; readonly fresh: LoadName }
  /** The latest `keep` or `restore` is durable. */
  | { readonly kind: 'kept' }
  | { readonly kind: 'keep-failed'; readonly failure: Failure }
  | { readonly kind: 'done'; readonly command: AgentCommand; readonly host: HostName }
  | {
      readonly kind: 'failed';
      readonly command: AgentCommand;
      readonly host: HostName;
      readonly failure: Failure;
    }
  | { readonly kind: 'cancel'; readonly failure: Failure };

export type LoaderEffect =
  | { readonly kind: 'keep'; readonly load: LoadName; readonly phase: KeptPhase }
  /** Keep what was kept before this load: it stands for nothing. Answered as `keep` is. */
  | { readonly kind: 'restore'; readonly load: LoadName }
  | { readonly kind: 'command'; readonly command: AgentCommand; readonly host: HostName; readonly load: LoadName }
  /** Stop waiting for the answer to this command: it is of no more interest. */
  | { readonly kind: 'abandon'; readonly command: AgentCommand; readonly host: HostName }
  | { readonly kind: 'finish'; readonly outcome: LoadOutcome };

export type LoadOutcome =
  /** `replayed`: the load was kept before, and was told again. */
  | { readonly kind: 'ready'; readonly load: LoadName; readonly replayed: boolean }
  | {
      readonly kind: 'failed';
      readonly failure: Failure;
      /** Who failed: an agent, or `null` for the loader itself. */
      readonly host: HostName | null;
      /** Agents that this load was taken from again. */
      readonly withdrawn: readonly HostName[];
      /** Agents that may still hold something of it, and why. */
      readonly left: readonly { readonly host: HostName; readonly failure: Failure }[];
    };

export type LoaderState =
  | { readonly kind: 'idle'; readonly order: LoadOrder }
  | ({ readonly kind: 'keeping'; readonly cancelled: Failure | null } & Running)
  | ({ readonly kind: 'commanding'; readonly phase: Phase; readonly waiting: readonly HostName[] } & Running)
  | ({ readonly kind: 'marking-ready' } & Running)
  | Withdrawing
  | ({ readonly kind: 'marking-failed' } & Failing)
  | { readonly kind: 'finished' };

type Withdrawing = { readonly kind: 'withdrawing'; readonly waiting: readonly Withdrawal[] } & Failing;

/** What says that no answer came, which leaves open whether the agent was told. */
const noAnswer: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'AGENT_UNREACHABLE',
  'RPC_TIMED_OUT',
  'RPC_FAILED',
  'CANCELLED',
]);
const isAnswer = ({ code }: Failure): boolean => !noAnswer.has(code);

/** What every agent, or the head's alone, has to do before the next phase begins. */
type Phase = Exclude<AgentCommand, 'unload'>;

interface Running {
  readonly order: LoadOrder;
  readonly load: LoadName;
  readonly replayed: boolean;
}

interface Failing extends Running {
  readonly failure: Failure;
  readonly host: HostName | null;
  readonly withdrawn: readonly HostName[];
  readonly left: readonly { readonly host: HostName; readonly failure: Failure }[];
  /** Whether every agent that has been told, and has answered so far, refused the load. */
  readonly isRefused: boolean;
}

export interface LoaderStep {
  readonly state: LoaderState;
  readonly effects: readonly LoaderEffect[];
}

/** Whether agents may hold this load: it was told to them, and not taken from all of them. */
export const isStanding = ({ phase }: Pick<KeptLoad, 'phase'>): boolean => phase === 'loading' || phase === 'ready';

/** Whether the ring has to be unloaded before this plan can be loaded. */
export const standsWithOtherPlan = (kept: KeptLoad | null, digest: string): boolean =>
  kept !== null && isStanding(kept) && kept.planDigest !== digest;

/**
 * Whether its unload was begun and cut short. It is not told again: agents that have let go of it would take it for new,
 * and number its sessions and requests from the start (E1).
 */
export const isHalfUnloaded = (kept: Pick<KeptLoad, 'phase'> | null): boolean => kept?.phase === 'unloading';

export const beginLoad = (order: LoadOrder): LoaderState => ({ kind: 'idle', order });

export function loaderStep(state: LoaderState, input: LoaderInput): LoaderStep {
  switch (input.kind) {
    case 'begin':
      return begin(state, input);
    case 'kept':
      return kept(state);
    case 'keep-failed':
      return keepFailed(state, input.failure);
    case 'done':
      return done(state, input.command, input.host);
    case 'failed':
      return failed(state, input);
    case 'cancel':
      return cancel(state, input.failure);
    default:
      return unreachable(input);
  }
}

function begin(state: LoaderState, input: Extract<LoaderInput, { kind: 'begin' }>): LoaderStep {
  if (state.kind !== 'idle') return unchanged(state);
  const { order } = state;
  const { kept, fresh } = input;
  if (isHalfUnloaded(kept)) {
    const failure: Failure = { code: 'RING_HALF_UNLOADED', facts: { ring: order.ring } };
    return finish({ kind: 'failed', failure, host: null, withdrawn: [], left: [] });
  }
  if (standsWithOtherPlan(kept, order.planDigest)) {
    const failure: Failure = { code: 'RING_LOADED', facts: { ring: order.ring } };
    return finish({ kind: 'failed', failure, host: null, withdrawn: [], left: [] });
  }
  const stands = kept !== null && isStanding(kept);
  const load = stands ? { generation: kept.generation, loadId: kept.loadId } : fresh;
  return {
    state: { kind: 'keeping', order, load, replayed: stands, cancelled: null },
    effects: [{ kind: 'keep', load, phase: 'loading' }],
  };
}

function kept(state: LoaderState): LoaderStep {
  switch (state.kind) {
    case 'keeping':
      if (state.cancelled !== null) return fail(state, { failure: state.cancelled, host: null, touched: [] });
      return enter(state, 'load');
    case 'marking-ready':
      return finish({ kind: 'ready', load: state.load, replayed: state.replayed });
    case 'marking-failed':
      return finish(failedOutcome(state));
    case 'idle':
    case 'commanding':
    case 'withdrawing':
    case 'finished':
      return unchanged(state);
    default:
      return unreachable(state);
  }
}

/** The disk fails: before the first command nothing has happened; later the file says less than is true, never more. */
function keepFailed(state: LoaderState, failure: Failure): LoaderStep {
  switch (state.kind) {
    case 'keeping':
      return finish({ kind: 'failed', failure, host: null, withdrawn: [], left: [] });
    case 'marking-ready':
      return fail(state, { failure, host: null, touched: state.order.hosts });
    case 'marking-failed':
      return finish(failedOutcome(state));
    case 'idle':
    case 'commanding':
    case 'withdrawing':
    case 'finished':
      return unchanged(state);
    default:
      return unreachable(state);
  }
}

function done(state: LoaderState, command: AgentCommand, host: HostName): LoaderStep {
  if (state.kind === 'withdrawing') {
    if (command === 'load') return withdraw({ ...state, isRefused: false }, host, { kind: 'load-done' });
    if (command !== 'unload') return unchanged(state);
    const withdrawn = [...without(state.withdrawn, host), host];
    return withdraw({ ...state, withdrawn }, host, { kind: 'unloaded' });
  }
  if (state.kind !== 'commanding' || state.phase !== command) return unchanged(state);
  const waiting = without(state.waiting, host);
  if (waiting.length > 0) return unchanged({ ...state, waiting });
  switch (state.phase) {
    case 'load':
      return enter(state, 'link');
    case 'link':
      return enter(state, 'probe');
    case 'probe':
      return {
        state: { ...running(state), kind: 'marking-ready' },
        effects: [{ kind: 'keep', load: state.load, phase: 'ready' }],
      };
    default:
      return unreachable(state.phase);
  }
}

function failed(state: LoaderState, input: Extract<LoaderInput, { kind: 'failed' }>): LoaderStep {
  const { command, host, failure } = input;
  if (state.kind === 'withdrawing') {
    if (command === 'load') {
      const isRefused = state.isRefused && isAnswer(failure);
      return withdraw({ ...state, isRefused }, host, { kind: 'load-failed' });
    }
    return command === 'unload' ? withdraw(state, host, { kind: 'unload-failed', failure }) : unchanged(state);
  }
  if (state.kind !== 'commanding' || state.phase !== command) return unchanged(state);
  return fail(state, { failure, host, touched: state.order.hosts });
}

function cancel(state: LoaderState, failure: Failure): LoaderStep {
  switch (state.kind) {
    case 'idle':
      return finish({ kind: 'failed', failure, host: null, withdrawn: [], left: [] });
    case 'keeping':
      return unchanged({ ...state, cancelled: failure });
    case 'commanding':
      return fail(state, { failure, host: null, touched: state.order.hosts });
    // Too late: the ring stands, or is being taken down already.
    case 'marking-ready':
    case 'withdrawing':
    case 'marking-failed':
    case 'finished':
      return unchanged(state);
    default:
      return unreachable(state);
  }
}

function enter(state: Running, phase: Phase): LoaderStep {
  const { order, load } = state;
  const hosts = phase === 'probe' ? order.hosts.slice(0, 1) : order.hosts;
  return {
    state: { ...running(state), kind: 'commanding', phase, waiting: hosts },
    effects: hosts.map((host) => ({ kind: 'command', command: phase, host, load })),
  };
}

interface Cause {
  readonly failure: Failure;
  readonly host: HostName | null;
  /** Agents that have been told of this load. */
  readonly touched: readonly HostName[];
}

function fail(state: LoaderState & Running, { failure, host, touched }: Cause): LoaderStep {
  const phase = state.kind === 'commanding' ? state.phase : null;
  const pending = state.kind === 'commanding' ? without(state.waiting, host) : [];
  const isRefused =
    touched.length === 0 ||
    (state.kind === 'commanding' &&
      phase === 'load' &&
      state.waiting.length === state.order.hosts.length &&
      (host === null || isAnswer(failure)));
  const failing: Failing = { ...running(state), failure, host, withdrawn: [], left: [], isRefused };
  const abandons = phase === null ? [] : pending.map((other) => abandon(phase, other));
  // G6: it may serve from before; `load` again mends it, `unload` takes it down.
  if (state.replayed)
    return { state: { kind: 'finished' }, effects: [...abandons, finishEffect(failedOutcome(failing))] };
  if (touched.length === 0) return markFailed(failing);
  const isLoading = (other: HostName): boolean => phase === 'load' && pending.includes(other);
  const waiting = touched.map((other): Withdrawal => ({
    host: other,
    load: isLoading(other) ? 'running' : 'ended',
    unload: 'asked',
  }));
  return {
    state: { ...failing, kind: 'withdrawing', waiting },
    // A Load that was cancelled may still be carried out: its answer is waited for.
    effects: [...(phase === 'load' ? [] : abandons), ...touched.map((other) => unload(state.load, other))],
  };
}

function withdraw(state: Withdrawing, host: HostName, news: WithdrawalNews): LoaderStep {
  const from = state.waiting.find((entry) => entry.host === host);
  if (from === undefined) return unchanged(state);
  const others = state.waiting.filter((entry) => entry !== from);
  const step = withdrawalStep(from, news);
  switch (step.kind) {
    case 'waiting':
      return unchanged({ ...state, waiting: [...others, step.next] });
    case 'again':
      return { state: { ...state, waiting: [...others, step.next] }, effects: [unload(state.load, host)] };
    case 'clear':
      return withdrew({ ...state, waiting: others });
    case 'left': {
      const left = [...state.left, { host, failure: step.failure }];
      const next = withdrew({ ...state, waiting: others, left });
      return from.load === 'running' ? { ...next, effects: [abandon('load', host), ...next.effects] } : next;
    }
    default:
      return unreachable(step);
  }
}

function withdrew(state: Withdrawing): LoaderStep {
  return state.waiting.length > 0 ? unchanged(state) : markFailed(state);
}

const abandon = (command: AgentCommand, host: HostName): LoaderEffect => ({ kind: 'abandon', command, host });
const unload = (load: LoadName, host: HostName): LoaderEffect => ({ kind: 'command', command: 'unload', host, load });

/** While an agent may hold something of the load, its file goes on to say so: `unload` then has what it needs. */
function markFailed(failing: Failing): LoaderStep {
  const { order, load, replayed, failure, host, withdrawn, left, isRefused } = failing;
  const wasTaken = !isRefused || withdrawn.length > 0;
  // One that was told again may have sessions: what is left of it is only ever taken down (E1).
  const phase = left.length === 0 ? 'failed' : replayed ? 'unloading' : 'loading';
  return {
    state: { kind: 'marking-failed', order, load, replayed, failure, host, withdrawn, left, isRefused },
    effects: [left.length > 0 || wasTaken ? { kind: 'keep', load, phase } : { kind: 'restore', load }],
  };
}

const failedOutcome = ({ failure, host, withdrawn, left }: Failing): LoadOutcome => ({
  kind: 'failed',
  failure,
  host,
  withdrawn,
  left,
});

const finishEffect = (outcome: LoadOutcome): LoaderEffect => ({ kind: 'finish', outcome });
const finish = (outcome: LoadOutcome): LoaderStep => ({
  state: { kind: 'finished' },
  effects: [finishEffect(outcome)],
});
const unchanged = (state: LoaderState): LoaderStep => ({ state, effects: [] });
const running = ({ order, load, replayed }: Running): Running => ({ order, load, replayed });
const without = (hosts: readonly HostName[], host: HostName | null): readonly HostName[] =>
  hosts.filter((other) => other !== host);
