/**
 * R1, R2: a ring that lost a part waits for it, and comes back by itself as far as this host can bring it back.
 *
 * A loss is told all round: every agent of the ring cuts its links, makes its stages empty by new connections (nothing of
 * before can come through those), starts the ones that died, and dials its edges anew; then the head probes. Nobody
 * directs this, so agents meet each other in any state: an edge is dialled until its receiver takes it, and one that is
 * dialled twice shows its receiver that there was a loss that it has not heard of.
 */
import { P4Error } from '../protocol/errors.ts';
import type { NodeIndex } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { Effect } from './effects.ts';
import { suspendedHead } from './head/recovery.ts';
import { lossText, replyTo, waitingCalls, withRing } from './outcome.ts';
import { isHead, type AgentState, type LiveRing, type NodeState, type Suspension } from './state.ts';
import type { Step } from './step.ts';

export interface Loss {
  readonly error: P4Error;
  readonly atMs: number;
  /** G5: a node whose stage is ended, not made empty. */
  readonly stranger?: NodeIndex;
}

/** A part of the ring is lost: what hangs on it waits, and what is left of it on this host is made as new. */
export function suspend(state: AgentState, ring: LiveRing, loss: Loss): Step {
  const at = { ring: ring.ring, load: ring.load };
  const { suspension, effects: told, state: counted } = suspended(state, ring, loss);
  const emptied = emptiedNodes(ring, loss.stranger ?? null);
  const next: LiveRing = {
    ...ring,
    suspension,
    nodes: emptied.nodes,
    phase: { kind: 'loading', calls: [] },
    links: [],
    head: ring.head === null ? null : suspendedHead(ring.head),
  };
  return {
    state: withRing(counted, next),
    records:
      ring.suspension === null ? [{ kind: 'ring-suspended', load: ring.load, reason: lossText(loss.error) }] : [],
    effects: [
      { kind: 'cut-ring', ...at, error: loss.error },
      ...replyTo(waitingCalls(ring.phase), { kind: 'refused', error: loss.error }),
      ...emptied.effects,
      ...told,
    ],
  };
}

/** The ring cannot be linked now; what it has stays. */
export function delayed(state: AgentState, ring: LiveRing, loss: Loss): Step {
  const { suspension, effects, state: counted } = suspended(state, ring, loss);
  const next: LiveRing = { ...ring, suspension, phase: { kind: 'unlinked' } };
  return {
    state: withRing(counted, next),
    records: [],
    effects: [...replyTo(waitingCalls(ring.phase), { kind: 'refused', error: loss.error }), ...effects],
  };
}

function suspended(
  state: AgentState,
  ring: LiveRing,
  { error: found, atMs }: Loss,
): { state: AgentState; suspension: Suspension; effects: Effect[] } {
  const error = namingStage(found, ring);
  const at = { ring: ring.ring, load: ring.load };
  const former = ring.suspension;
  const suspension: Suspension =
    former === null
      ? newSuspension(state.nextSuspension, error, atMs)
      : { ...former, error: tellingError(former.error, error), attempt: former.attempt + 1 };
  const { number, attempt } = suspension;
  const ms = Math.min(limits.recoveryRetryMs * 2 ** attempt, limits.recoveryRetryMostMs);
  const effects: Effect[] = [{ kind: 'await-retry', ...at, suspension: number, attempt, ms }];
  if (former !== null) return { state, suspension, effects };
  if (isHead(ring, state.host)) effects.push(...deadlineEffects(ring, suspension));
  return { state: { ...state, nextSuspension: number + 1 }, suspension, effects };
}

export const newSuspension = (number: number, error: P4Error, atMs: number): Suspension => ({
  ...{ number, error, sinceMs: atMs, attempt: 0, isOverdue: false, progressMs: atMs, stagesLost: 0 },
});

/** A stage of the ring loads, or did until now: its deadline counts from here. */
export const progressed = (ring: LiveRing, atMs: number): LiveRing =>
  ring.suspension === null || givesUp(ring.suspension)
    ? ring
    : { ...ring, suspension: { ...ring.suspension, progressMs: atMs } };

/** Whether a stage of this host loads, and may be hoped for. */
export const loadsStages = ({ nodes, suspension }: LiveRing): boolean =>
  (suspension === null || !givesUp(suspension)) && [...nodes.values()].some(({ kind }) => kind === 'loading');

const givesUp = ({ stagesLost }: Suspension): boolean => stagesLost >= limits.stagesLostMost;

/** A stage was lost while its ring was suspended. */
export const lostAgain = (ring: LiveRing): LiveRing =>
  ring.suspension === null
    ? ring
    : { ...ring, suspension: { ...ring.suspension, stagesLost: ring.suspension.stagesLost + 1 } };

/** Readers hear of it, and the clock of the plan's deadline starts; at the head's agent only. */
export function deadlineEffects(
  { ring, load, plan }: LiveRing,
  { number, error }: Suspension,
  ms = plan.deadlineSeconds * 1000,
): Effect[] {
  return [
    { kind: 'await-deadline', ring, load, suspension: number, ms },
    { kind: 'publish-pause', ring, load, error, ms },
  ];
}

/** What an agent that cannot be reached says of it names no stage: the first one that it has of the ring is told. */
function namingStage(error: P4Error, { plan }: LiveRing): P4Error {
  if (error.facts['node'] !== undefined) return error;
  const node = plan.stages.findIndex(({ host }) => host === error.facts['host']);
  return node < 0 ? error : new P4Error(error.code, { node, ...error.facts }, error);
}

/** Errors that only say that others are not ready either do not take the place of the one that says what was lost. */
const tellingError = (former: P4Error, error: P4Error): P4Error =>
  ['RING_NOT_READY', 'EDGE_TAKEN', 'LINK_LOST', 'PROBE_LOST'].includes(error.code) ? former : error;

function emptiedNodes(ring: LiveRing, stranger: NodeIndex | null): { nodes: LiveRing['nodes']; effects: Effect[] } {
  const effects: Effect[] = [];
  const nodes = new Map<NodeIndex, NodeState>();
  for (const [node, nodeState] of ring.nodes) {
    const of = { ring: ring.ring, load: ring.load, node, incarnation: nodeState.incarnation };
    if (nodeState.kind !== 'loaded') nodes.set(node, nodeState);
    else if (node === stranger) {
      nodes.set(node, { kind: 'stopping', incarnation: nodeState.incarnation });
      effects.push({ kind: 'stop-stage', ...of });
    } else {
      nodes.set(node, { kind: 'attaching', incarnation: nodeState.incarnation });
      effects.push({ kind: 'attach-stage', ...of });
    }
  }
  return { nodes, effects };
}
