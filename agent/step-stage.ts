/** A ring's stages on this host: loaded, lost, stopped; and the ring's end, with everything that hangs on it. */
import type { P4Error } from '../protocol/errors.ts';
import type { NodeIndex } from '../protocol/ids.ts';
import type { CallId } from './calls.ts';
import type { Effect } from './effects.ts';
import { withEntry } from './map-entries.ts';
import { abandonedRequests, headOf, restoredTexts } from './head/recovery.ts';
import { loseHead } from './head/sessions.ts';
import type { HeadStep } from './head/head-step.ts';
import type { Vocabulary } from './head/vocabulary.ts';
import type { Input } from './inputs.ts';
import { lossText, replyTo, ringOfLoad, unchanged, waitingCalls, withoutRing, withRing } from './outcome.ts';
import type { JournalRecord, LoadEnded } from './records.ts';
import type { AgentState, LiveRing, NodeState, RingPhase } from './state.ts';
import { dialled } from './step-link.ts';
import { loadsStages, lostAgain, progressed, suspend } from './step-suspension.ts';
import type { Step } from './step.ts';

export function stageLoaded(state: AgentState, input: Extract<Input, { kind: 'stage-loaded' }>): Step {
  const ring = ringOfLoad(state, input);
  const node = ring?.nodes.get(input.node);
  if (ring?.phase.kind !== 'loading' || node?.incarnation !== input.incarnation) return unchanged(state);
  if (node.kind !== 'loading' && node.kind !== 'attaching') return unchanged(state);
  const { incarnation, pid, vocabulary, keepsPrefixes, atMs } = input;
  const nodes = withEntry<NodeIndex, NodeState>(ring.nodes, input.node, { kind: 'loaded', incarnation, pid });
  const told = vocabulary === null || ring.head !== null ? null : headUp(ring, { vocabulary, keepsPrefixes });
  const hasLoaded = node.kind === 'loading';
  const loaded: LiveRing = { ...(hasLoaded ? progressed(ring, atMs) : ring), nodes, head: told?.head ?? ring.head };
  const record: JournalRecord = {
    kind: 'node-changed',
    ...{ load: ring.load, node: input.node, to: 'loaded', reason: null },
  };
  const next = stagesLoaded(state, loaded, { calls: ring.phase.calls, atMs });
  return {
    state: next.state,
    records: hasLoaded ? [record, ...next.records] : next.records,
    effects: [...(told?.effects ?? []), ...next.effects],
  };
}

/** With what its requests have said so far. */
function headUp(
  { ring, load, plan, memory }: LiveRing,
  { vocabulary, keepsPrefixes }: { readonly vocabulary: Vocabulary; readonly keepsPrefixes: boolean },
): HeadStep {
  const keptPrefixes = keepsPrefixes ? plan.keptPrefixes : 0;
  return restoredTexts(headOf({ ...plan, keptPrefixes }, vocabulary, memory), { ring, load });
}

/** The loader links a ring that it loads, when all its stages are up; one that was lost links itself. */
function stagesLoaded(
  state: AgentState,
  ring: LiveRing,
  { calls, atMs }: { readonly calls: readonly CallId[]; readonly atMs: number },
): Step {
  if ([...ring.nodes.values()].some(({ kind }) => kind !== 'loaded')) return unchanged(withRing(state, ring));
  const loaded: LiveRing = { ...ring, phase: { kind: 'loaded' } };
  const replies = replyTo(calls, { kind: 'loaded', confirmed: false });
  if (ring.suspension === null) return { state: withRing(state, loaded), records: [], effects: replies };
  const linking = dialled(state, loaded, { calls: [], atMs });
  return { ...linking, effects: [...replies, ...linking.effects] };
}

/** A stage ended by itself, or never came up. That fails the load that began it; later it suspends the ring (R1). */
export function stageLost(state: AgentState, input: Extract<Input, { kind: 'stage-lost' }>): Step {
  const ring = ringOfLoad(state, input);
  const node = ring?.nodes.get(input.node);
  if (ring === null || node?.incarnation !== input.incarnation) return unchanged(state);
  if (node.kind === 'stopping') return stageStopped(state, { ...input, kind: 'stage-stopped' });
  if (node.kind !== 'loading' && node.kind !== 'attaching' && node.kind !== 'loaded') return unchanged(state);
  const { incarnation, error, atMs } = input;
  const nodes = withEntry<NodeIndex, NodeState>(ring.nodes, input.node, { kind: 'lost', incarnation, error });
  const without = { ...lostAgain(loadsStages(ring) ? progressed(ring, atMs) : ring), nodes };
  const record: JournalRecord = {
    kind: 'node-changed',
    ...{ load: ring.load, node: input.node, to: 'lost', reason: error.code },
  };
  const isFirstLoad = ring.phase.kind === 'loading' && ring.suspension === null;
  const next = isFirstLoad
    ? endRing(state, without, { calls: loadCalls(ring.phase), failure: error, error, by: 'failed-load' })
    : suspend(state, without, { error, atMs });
  return { ...next, records: [record, ...next.records] };
}

const loadCalls = (phase: RingPhase): readonly CallId[] => (phase.kind === 'loading' ? phase.calls : []);

export function stageStopped(state: AgentState, input: Extract<Input, { kind: 'stage-stopped' }>): Step {
  const ring = ringOfLoad(state, input);
  const node = ring?.nodes.get(input.node);
  if (ring === null || node?.kind !== 'stopping' || node.incarnation !== input.incarnation) return unchanged(state);
  const { incarnation } = input;
  const { suspension } = ring;
  const stopped: NodeState =
    suspension === null || ring.phase.kind === 'ending'
      ? { kind: 'stopped', incarnation }
      : { kind: 'lost', incarnation, error: suspension.error };
  const nodes = withEntry<NodeIndex, NodeState>(ring.nodes, input.node, stopped);
  const record: JournalRecord = {
    kind: 'node-changed',
    ...{ load: ring.load, node: input.node, to: 'stopped', reason: null },
  };
  if (stopped.kind === 'stopped') {
    const next = forgetWhenEnded(state, { ...ring, nodes });
    return { ...next, records: [record, ...next.records] };
  }
  const { number, attempt } = suspension ?? { number: 0, attempt: 0 };
  const retry: Effect = {
    kind: 'await-retry',
    ...{ ring: ring.ring, load: ring.load, suspension: number, attempt, ms: 0 },
  };
  return { state: withRing(state, { ...ring, nodes }), records: [record], effects: [retry] };
}

/** The ring goes: `calls` are answered when its last stage has stopped. */
interface RingEnd {
  readonly calls: readonly CallId[];
  readonly failure: P4Error | null;
  /** What the ring's requests and neighbours are told. */
  readonly error: P4Error;
  readonly by: LoadEnded['by'];
}

/** Ends what hangs on a ring: its requests, its links, the calls that wait for it, its stages. */
export function endRing(state: AgentState, ring: LiveRing, { calls, failure, error, by }: RingEnd): Step {
  const at = { ring: ring.ring, load: ring.load };
  const headStep = ring.head === null ? null : loseHead(ring.head, at, { error, detail: lossText(error) });
  // Its head had not come up again: what waited for it ends with the ring (S3).
  const waiting = ring.head === null ? abandonedRequests(ring.memory, ring.load, lossText(error)) : [];
  const stopping = stoppedNodes(ring);
  const phase: RingPhase = { kind: 'ending', calls, failure, by };
  const ended: LiveRing = { ...ring, nodes: stopping.nodes, phase, links: [], head: headStep?.head ?? null };
  const next = forgetWhenEnded(withRing(state, ended), ended);
  const others = waitingCalls(ring.phase).filter((call) => !calls.includes(call));
  return {
    state: next.state,
    records: [...(headStep?.records ?? []), ...waiting, ...next.records],
    effects: [
      { kind: 'cut-ring', ...at, error },
      ...(headStep?.effects ?? []),
      ...(ring.suspension === null ? [] : [{ kind: 'publish-resume', ...at } as const]),
      ...replyTo(others, { kind: 'refused', error }),
      ...stopping.effects,
      ...next.effects,
    ],
  };
}

/** Tells every stage of the ring that still runs to stop. */
function stoppedNodes(ring: LiveRing): { nodes: LiveRing['nodes']; effects: Effect[] } {
  const effects: Effect[] = [];
  const nodes = new Map<NodeIndex, NodeState>();
  for (const [node, nodeState] of ring.nodes) {
    const runs = nodeState.kind === 'loading' || nodeState.kind === 'attaching' || nodeState.kind === 'loaded';
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
    records: [{ kind: 'load-ended', load: ring.load, by: phase.by }],
    effects: replyTo(phase.calls, reply),
  };
}
