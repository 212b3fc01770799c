/** The ring's edges that leave this host: dialled once a load, lost together with the ring (A3, E5). */
import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import type { DialledEdge } from './effects.ts';
import type { Input } from './inputs.ts';
import type { EdgeAddress } from './links/link.ts';
import { addressedRing, generationMismatch, refused, replied, ringOfLoad, unchanged, withRing } from './outcome.ts';
import type { AgentState, LiveRing } from './state.ts';
import { loseRing } from './step-stage.ts';
import type { Step } from './step.ts';

export function link(state: AgentState, input: Extract<Input, { kind: 'link' }>): Step {
  const addressed = addressedRing(state, input);
  if (addressed.kind === 'refused') return refused(state, input.call, addressed.error);
  const { ring } = addressed;
  switch (ring.phase.kind) {
    case 'loaded': {
      const edges = leavingEdges(ring, state.host);
      const phase =
        edges.length === 0 ? ({ kind: 'linked' } as const) : ({ kind: 'linking', call: input.call } as const);
      const next = withRing(state, { ...ring, phase });
      if (edges.length === 0) return replied(next, input.call, { kind: 'linked', links: [] });
      return { state: next, records: [], effects: [{ kind: 'dial-links', ring: ring.ring, load: ring.load, edges }] };
    }
    case 'linked':
    case 'probing':
    case 'ready':
      return replied(state, input.call, { kind: 'linked', links: ring.links });
    case 'lost':
      return refused(state, input.call, ring.phase.error);
    case 'loading':
    case 'linking':
    case 'ending':
      return refused(state, input.call, new P4Error('RING_NOT_READY', { ring: ring.ring, phase: ring.phase.kind }));
  }
}

export function linksUp(state: AgentState, input: Extract<Input, { kind: 'links-up' }>): Step {
  const ring = ringOfLoad(state, input);
  if (ring?.phase.kind !== 'linking') return unchanged(state);
  const { links } = input;
  const next = withRing(state, { ...ring, links, phase: { kind: 'linked' } });
  return replied(next, ring.phase.call, { kind: 'linked', links });
}

/** A link broke, or could not be made, or an incoming one ended: the ring's routes are gone, so the ring is lost. */
export function linkLost(state: AgentState, input: Extract<Input, { kind: 'link-lost' }>): Step {
  const ring = ringOfLoad(state, input);
  switch (ring?.phase.kind) {
    case 'loaded':
    case 'linking':
    case 'linked':
    case 'probing':
    case 'ready':
      return loseRing(state, ring, { kind: 'lose', error: input.error });
    case 'loading':
    case 'lost':
    case 'ending':
    case undefined:
      return unchanged(state);
  }
}

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
  if (ring?.kind !== 'live') return new P4Error('RING_UNKNOWN', { ring: edge.ring, host: state.host });
  if (ring.generation !== edge.generation) return generationMismatch(state, edge.ring);
  const { stages } = ring.plan;
  const source = stages[edge.source];
  const destination = stages[edge.destination];
  const follows = (edge.source + 1) % stages.length === edge.destination;
  if (!follows || source?.host !== peer || destination?.host !== state.host) {
    return new P4Error('EDGE_UNKNOWN', { ring: edge.ring, source: edge.source, destination: edge.destination, peer });
  }
  if (!ring.nodes.has(edge.destination) || ring.phase.kind === 'loading' || ring.phase.kind === 'ending') {
    return new P4Error('RING_NOT_READY', { ring: edge.ring, phase: ring.phase.kind });
  }
  return ring.phase.kind === 'lost' ? ring.phase.error : null;
}
