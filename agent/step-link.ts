/** The ring's edges that leave this host: dialled once a load, and again after each loss (A3, E5). */
import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import type { CallId, LinkedEdge } from './calls.ts';
import type { DialledEdge, Effect } from './effects.ts';
import type { Input } from './inputs.ts';
import type { EdgeAddress } from './links/link.ts';
import {
  addressedRing,
  claimFault,
  generationMismatch,
  refused,
  replied,
  replyTo,
  ringOfLoad,
  unchanged,
  waitingCalls,
  withRing,
} from './outcome.ts';
import type { AgentState, LiveRing } from './state.ts';
import { probeAgain } from './step-ring.ts';
import { delayed, loadsStages, progressed, suspend } from './step-suspension.ts';
import type { Step } from './step.ts';

export function link(state: AgentState, input: Extract<Input, { kind: 'link' }>): Step {
  const addressed = addressedRing(state, input);
  if (addressed.kind === 'refused') return refused(state, input.call, addressed.error);
  const { ring } = addressed;
  switch (ring.phase.kind) {
    case 'loaded':
    case 'unlinked':
      return dialled(state, ring, { calls: [input.call], atMs: input.atMs });
    case 'linked':
    case 'probing':
    case 'ready':
      return replied(state, input.call, { kind: 'linked', links: ring.links });
    // Another loader, or a recovery, is at it: what comes of that is the answer (G6).
    case 'linking': {
      const calls = [...ring.phase.calls, input.call];
      return unchanged(withRing(state, { ...ring, phase: { kind: 'linking', calls } }));
    }
    case 'loading':
    case 'ending':
      return refused(state, input.call, new P4Error('RING_NOT_READY', { ring: ring.ring, phase: ring.phase.kind }));
  }
}

/** For which calls, and when. */
interface Linking {
  readonly calls: readonly CallId[];
  readonly atMs: number;
}

/** Dials what does not stand of the edges that leave this host. */
export function dialled(state: AgentState, ring: LiveRing, { calls, atMs }: Linking): Step {
  const missing = leavingEdges(ring, state.host).filter(
    ({ source }) => !ring.links.some((standing) => standing.source === source),
  );
  if (missing.length === 0) return linked(state, ring, { calls, atMs });
  const linking = withRing(state, { ...ring, phase: { kind: 'linking', calls } });
  const { ring: name, load } = ring;
  return { state: linking, records: [], effects: [{ kind: 'dial-links', ring: name, load, edges: missing }] };
}

export function linkUp(state: AgentState, input: Extract<Input, { kind: 'link-up' }>): Step {
  const ring = ringOfLoad(state, input);
  if (ring?.phase.kind !== 'linking' && ring?.phase.kind !== 'unlinked') return unchanged(state);
  const links: readonly LinkedEdge[] = [...ring.links, input.link];
  const next = { ...ring, links };
  if (links.length < leavingEdges(ring, state.host).length) return unchanged(withRing(state, next));
  return linked(state, next, { calls: waitingCalls(ring.phase), atMs: input.atMs });
}

/** Every edge stands. What is left to do for a ring that was lost is the head's: a probe. */
function linked(state: AgentState, ring: LiveRing, { calls, atMs }: Linking): Step {
  const replies = replyTo(calls, { kind: 'linked', links: ring.links });
  const standing: LiveRing = { ...ring, phase: { kind: 'linked' } };
  if (ring.suspension !== null && ring.head !== null) {
    const probing = probeAgain(state, standing, { ...ring.suspension, atMs });
    return { ...probing, effects: [...replies, ...probing.effects] };
  }
  return { state: withRing(state, { ...standing, suspension: null }), records: [], effects: replies };
}

export function dialFailed(state: AgentState, input: Extract<Input, { kind: 'dial-failed' }>): Step {
  const ring = ringOfLoad(state, input);
  const next = ring?.phase.kind === 'linking' ? delayed(state, ring, input) : unchanged(state);
  const { error } = input;
  if (error.code !== 'RING_NOT_READY' || error.facts['phase'] !== 'loading') return next;
  const told = neighbourLoads(next.state, { ...input, kind: 'neighbour-loads' });
  return { ...told, effects: [...next.effects, ...told.effects] };
}

/**
 * R1: a stage loads on the way from one of this host to the head: a deadline is put off for it wherever in the ring it is, so
 * the hosts before this one are told as well.
 */
export function neighbourLoads(state: AgentState, input: Extract<Input, { kind: 'neighbour-loads' }>): Step {
  const ring = ringOfLoad(state, input);
  if (ring === null || ring.phase.kind === 'ending') return unchanged(state);
  const tell: Effect = { kind: 'tell-loading', ring: ring.ring, load: ring.load, source: input.source };
  return { state: withRing(state, progressed(ring, input.atMs)), records: [], effects: [tell] };
}

/** An edge that stood broke, or came in and ended: the ring's routes here are gone, and it is suspended. */
export function linkLost(state: AgentState, input: Extract<Input, { kind: 'link-lost' }>): Step {
  const ring = ringOfLoad(state, input);
  switch (ring?.phase.kind) {
    case 'loaded':
    case 'linking':
    case 'unlinked':
    case 'linked':
    case 'probing':
    case 'ready':
      return suspend(state, ring, input);
    case 'loading':
    case 'ending':
    case undefined:
      return unchanged(state);
  }
}

/** Of edges that were to be dialled, those that still are: the ring may have been cut since, or linked another way. */
export const edgesToDial = ({ phase, links }: LiveRing, edges: readonly DialledEdge[]): readonly DialledEdge[] =>
  phase.kind === 'linking' ? edges.filter((edge) => !links.some(({ source }) => source === edge.source)) : [];

/** The edges from a stage of this host to a stage of another; the tail's leads to the head. */
function leavingEdges(ring: LiveRing, host: HostName): DialledEdge[] {
  const { stages } = ring.plan;
  return stages.flatMap((stage) => {
    const next = stages[(stage.index + 1) % stages.length];
    const placement = next === undefined ? undefined : ring.placements[next.index];
    if (stage.host !== host || next === undefined || placement === undefined || next.host === host) return [];
    const edge = { ring: ring.ring, generation: ring.generation, source: stage.index, destination: next.index };
    return [{ ...edge, host: next.host, address: placement.address, port: placement.port }];
  });
}

/** Whether an incoming edge is one of a live ring here, of this generation, from the host the plan names (G3). */
export function edgeFault(state: AgentState, edge: EdgeAddress, peer: HostName): P4Error | null {
  const ring = state.rings.get(edge.ring);
  if (ring === undefined) return new P4Error('RING_UNKNOWN', { ring: edge.ring, host: state.host });
  if (ring.kind === 'claimed') return claimFault(state, ring);
  if (ring.generation !== edge.generation) return generationMismatch(state, edge.ring);
  const { stages } = ring.plan;
  const source = stages[edge.source];
  const destination = stages[edge.destination];
  const follows = (edge.source + 1) % stages.length === edge.destination;
  if (!follows || source?.host !== peer || destination?.host !== state.host) {
    return new P4Error('EDGE_UNKNOWN', { ring: edge.ring, source: edge.source, destination: edge.destination, peer });
  }
  if (!ring.nodes.has(edge.destination) || ring.phase.kind === 'loading' || ring.phase.kind === 'ending') {
    return new P4Error('RING_NOT_READY', { ring: edge.ring, host: state.host, phase: phaseSeen(ring) });
  }
  return null;
}

/** R1: a deadline is put off for stages that load, not for those that are only made empty. */
function phaseSeen(ring: LiveRing): string {
  const { kind } = ring.phase;
  return kind === 'loading' && !loadsStages(ring) ? 'attaching' : kind;
}
