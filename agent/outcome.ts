/** The pieces that steps are made of. */
import { P4Error } from '../protocol/errors.ts';
import type { Generation, HostName, LoadId, RingName } from '../protocol/ids.ts';
import type { CallId, CallReply } from './calls.ts';
import type { Effect } from './effects.ts';
import type { HeadState } from './head/head-state.ts';
import { withEntry, withoutEntry } from './map-entries.ts';
import { isHead, type AgentState, type ClaimedRing, type LiveRing, type RingPhase, type RingState } from './state.ts';
import type { Step } from './step.ts';

export const unchanged = (state: AgentState): Step => ({ state, records: [], effects: [] });

export const replied = (state: AgentState, call: CallId, reply: CallReply): Step => ({
  state,
  records: [],
  effects: [{ kind: 'reply', call, reply }],
});

export const refused = (state: AgentState, call: CallId, error: P4Error): Step =>
  replied(state, call, { kind: 'refused', error });

export const withRing = (state: AgentState, ring: RingState): AgentState => ({
  ...state,
  rings: withEntry(state.rings, ring.ring, ring),
});

/** `withRing` for what every token changes: written out, as in `head-state.ts`. */
export const withHead = (state: AgentState, ring: LiveRing, head: HeadState): AgentState => ({
  host: state.host,
  rings: withEntry(state.rings, ring.ring, {
    kind: 'live',
    ring: ring.ring,
    load: ring.load,
    generation: ring.generation,
    planDigest: ring.planDigest,
    generationDigest: ring.generationDigest,
    plan: ring.plan,
    placements: ring.placements,
    phase: ring.phase,
    suspension: ring.suspension,
    nodes: ring.nodes,
    links: ring.links,
    memory: ring.memory,
    head,
  }),
  nextIncarnation: state.nextIncarnation,
  nextSuspension: state.nextSuspension,
});

export const withoutRing = (state: AgentState, ring: RingName): AgentState => ({
  ...state,
  rings: withoutEntry(state.rings, ring),
});

export const replyTo = (calls: readonly CallId[], reply: CallReply): Effect[] =>
  calls.map((call) => ({ kind: 'reply', call, reply }));

/** The live ring that a call means, or why it is refused: unknown, or of another generation (G3). */
export function addressedRing(
  state: AgentState,
  at: { readonly ring: RingName; readonly generation: Generation },
): { kind: 'ring'; ring: LiveRing } | { kind: 'refused'; error: P4Error } {
  const ring = state.rings.get(at.ring);
  if (ring === undefined)
    return { kind: 'refused', error: new P4Error('RING_UNKNOWN', { ring: at.ring, host: state.host }) };
  if (ring.kind === 'claimed') return { kind: 'refused', error: claimFault(state, ring) };
  if (ring.generation !== at.generation) return { kind: 'refused', error: generationMismatch(state, at.ring) };
  return { kind: 'ring', ring };
}

/** Why nothing goes through a ring of which nothing runs here. */
export const claimFault = (state: AgentState, { ring, fault }: ClaimedRing): P4Error =>
  fault ?? new P4Error('RING_EMPTY', { ring, host: state.host });

export const generationMismatch = (state: AgentState, ring: RingName): P4Error =>
  new P4Error('GENERATION_MISMATCH', { ring, host: state.host });

/** The live ring of this very load; news of a former load finds none. */
export function ringOfLoad(state: AgentState, of: { readonly ring: RingName; readonly load: LoadId }): LiveRing | null {
  const ring = state.rings.get(of.ring);
  return ring?.kind === 'live' && ring.load === of.load ? ring : null;
}

/** Why OUTER is not answered here. */
export const headMissing = (ring: LiveRing, host: HostName): P4Error =>
  isHead(ring, host)
    ? new P4Error('RING_NOT_READY', { ring: ring.ring, host, phase: ring.phase.kind })
    : new P4Error('NOT_THE_HEAD', { ring: ring.ring, host });

/** Calls that wait for something that will not come now. */
export function waitingCalls(phase: RingPhase): readonly CallId[] {
  switch (phase.kind) {
    case 'loading':
    case 'linking':
    case 'probing':
    case 'ending':
      return phase.calls;
    case 'loaded':
    case 'unlinked':
    case 'linked':
    case 'ready':
      return [];
  }
}

/** A loss on one line; what a stage said last is in its agent's log. */
export function lossText(error: P4Error): string {
  const facts = Object.entries(error.facts).filter(([, value]) => typeof value !== 'object');
  return [error.code, ...facts.map(([name, value]) => `${name} ${String(value)}`)].join(', ');
}
