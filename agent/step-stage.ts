/** A ring's stages on this host: loaded, lost, stopped; and what the ring's end means for everything that hangs on it. */
import type { P4Error } from '../protocol/errors.ts';
import type { NodeIndex } from '../protocol/ids.ts';
import type { CallId } from './calls.ts';
import type { Effect } from './effects.ts';
import { withEntry } from './head/head-state.ts';
import { loseHead, newHead } from './head/sessions.ts';
import type { Input } from './inputs.ts';
import { replyTo, ringOfLoad, unchanged, withoutRing, withRing } from './outcome.ts';
import type { JournalRecord } from './records.ts';
import type { AgentState, LiveRing, NodeState, RingPhase } from './state.ts';
import type { Step } from './step.ts';

export function stageLoaded(state: AgentState, input: Extract<Input, { kind: 'stage-loaded' }>): Step {
  const ring = ringOfLoad(state, input);
  const node = ring?.nodes.get(input.node);
  if (ring?.phase.kind !== 'loading' || node?.kind !== 'loading' || node.incarnation !== input.incarnation) {
    return unchanged(state);
  }
  const { incarnation, pid, vocabulary } = input;
  const nodes = withEntry<NodeIndex, NodeState>(ring.nodes, input.node, { kind: 'loaded', incarnation, pid });
  const head = vocabulary === null ? ring.head : newHead(ring.plan, vocabulary, ring.firstIds);
  const complete = [...nodes.values()].every(({ kind }) => kind === 'loaded');
  return {
    state: withRing(state, { ...ring, nodes, head, phase: complete ? { kind: 'loaded' } : ring.phase }),
    records: [{ kind: 'node-changed', load: ring.load, node: input.node, to: 'loaded', reason: null }],
    effects: complete ? replyTo(ring.phase.calls, { kind: 'loaded', confirmed: false }) : [],
  };
}

/** A stage ended by itself, or never came up. During a load that fails the load; later it loses the ring (R1). */
export function stageLost(state: AgentState, input: Extract<Input, { kind: 'stage-lost' }>): Step {
  const ring = ringOfLoad(state, input);
  const node = ring?.nodes.get(input.node);
  if (ring === null || node === undefined || node.incarnation !== input.incarnation) return unchanged(state);
  if (node.kind === 'stopping') return stageStopped(state, { ...input, kind: 'stage-stopped' });
  if (node.kind !== 'loading' && node.kind !== 'loaded') return unchanged(state);
  const { incarnation, error } = input;
  const nodes = withEntry<NodeIndex, NodeState>(ring.nodes, input.node, { kind: 'lost', incarnation, error });
  const without = { ...ring, nodes };
  const record: JournalRecord = {
    kind: 'node-changed',
    ...{ load: ring.load, node: input.node, to: 'lost', reason: error.code },
  };
  const next =
    ring.phase.kind === 'loading'
      ? loseRing(state, without, { kind: 'end', calls: ring.phase.calls, failure: error, error })
      : loseRing(state, without, { kind: 'lose', error });
  return { ...next, records: [record, ...next.records] };
}

export function stageStopped(state: AgentState, input: Extract<Input, { kind: 'stage-stopped' }>): Step {
  const ring = ringOfLoad(state, input);
  const node = ring?.nodes.get(input.node);
  if (ring === null || node?.kind !== 'stopping' || node.incarnation !== input.incarnation) return unchanged(state);
  const { incarnation } = input;
  const nodes = withEntry<NodeIndex, NodeState>(ring.nodes, input.node, { kind: 'stopped', incarnation });
  const record: JournalRecord = {
    kind: 'node-changed',
    load: ring.load,
    node: input.node,
    to: 'stopped',
    reason: null,
  };
  const next = forgetWhenEnded(state, { ...ring, nodes });
  return { ...next, records: [record, ...next.records] };
}

type Loss =
  /** The ring stays, lost, until it is loaded again or unloaded. */
  | { readonly kind: 'lose'; readonly error: P4Error }
  /** The ring goes: `calls` are answered when its last stage has stopped. */
  | {
      readonly kind: 'end';
      readonly calls: readonly CallId[];
      readonly failure: P4Error | null;
      readonly error: P4Error;
    };

/** Ends what hangs on a ring: its requests, its links, the calls that wait for it; and its stages if it ends for good. */
export function loseRing(state: AgentState, ring: LiveRing, loss: Loss): Step {
  const at = { ring: ring.ring, load: ring.load };
  const headStep = ring.head === null ? null : loseHead(ring.head, at, lossText(loss.error));
  const stopping = loss.kind === 'end' ? stopNodes(ring) : { nodes: ring.nodes, effects: [] };
  const phase: RingPhase =
    loss.kind === 'lose'
      ? { kind: 'lost', error: loss.error }
      : { kind: 'ending', calls: loss.calls, failure: loss.failure };
  const lost: LiveRing = { ...ring, nodes: stopping.nodes, phase, links: [], head: headStep?.head ?? null };
  const next = forgetWhenEnded(withRing(state, lost), lost);
  return {
    state: next.state,
    records: [...(headStep?.records ?? []), ...next.records],
    effects: [
      { kind: 'cut-ring', ...at, error: loss.error },
      ...(headStep?.effects ?? []),
      ...replyTo(waitingCalls(ring.phase, loss), { kind: 'refused', error: loss.error }),
      ...stopping.effects,
      ...next.effects,
    ],
  };
}

/** Tells every stage of the ring that still runs to stop. */
export function stopNodes(ring: LiveRing): { nodes: LiveRing['nodes']; effects: Effect[] } {
  const effects: Effect[] = [];
  const nodes = new Map<NodeIndex, NodeState>();
  for (const [node, nodeState] of ring.nodes) {
    const runs = nodeState.kind === 'loading' || nodeState.kind === 'loaded';
    const { incarnation } = nodeState;
    nodes.set(node, runs ? { kind: 'stopping', incarnation } : nodeState);
    if (runs) effects.push({ kind: 'stop-stage', ring: ring.ring, load: ring.load, node, incarnation });
  }
  return { nodes, effects };
}

function forgetWhenEnded(state: AgentState, ring: LiveRing): Step {
  const { phase } = ring;
  const stops = [...ring.nodes.values()].some(({ kind }) => kind === 'stopping');
  if (phase.kind !== 'ending' || stops) return unchanged(withRing(state, ring));
  const reply =
    phase.failure === null
      ? ({ kind: 'unloaded', stages: ring.nodes.size } as const)
      : ({ kind: 'refused', error: phase.failure } as const);
  return {
    state: withoutRing(state, ring.ring),
    records: [{ kind: 'load-ended', load: ring.load, by: phase.failure === null ? 'unload' : 'failed-load' }],
    effects: replyTo(phase.calls, reply),
  };
}

/** Calls that wait for something that will not come now; those of the loss itself are answered at its end. */
function waitingCalls(phase: RingPhase, loss: Loss): readonly CallId[] {
  switch (phase.kind) {
    case 'loading':
      return loss.kind === 'end' ? phase.calls.filter((call) => !loss.calls.includes(call)) : phase.calls;
    case 'linking':
    case 'probing':
      return [phase.call];
    case 'loaded':
    case 'linked':
    case 'ready':
    case 'lost':
    case 'ending':
      return [];
  }
}

/** A loss on one line; what a stage said last is in its agent's log. */
export function lossText(error: P4Error): string {
  const facts = Object.entries(error.facts).filter(([, value]) => typeof value !== 'object');
  return [error.code, ...facts.map(([name, value]) => `${name} ${String(value)}`)].join(', ');
}
