/** A ring's claim on this host: load (G6), unload, and giving it up without its generation (G7). */
import { P4Error } from '../protocol/errors.ts';
import type { NodeIndex } from '../protocol/ids.ts';
import { sameTerms, termsOf, underTerms } from './assignment.ts';
import { emptyMemory } from './head/memory.ts';
import type { Input } from './inputs.ts';
import { addressedRing, generationMismatch, refused, replied, unchanged, withRing } from './outcome.ts';
import type { JournalRecord, LoadTerms } from './records.ts';
import { startsOf } from './stage-starts.ts';
import { isHead, type AgentState, type LiveRing, type NodeState } from './state.ts';
import { claimEnded } from './step-claim.ts';
import { endRing } from './step-stage.ts';
import { deadlineEffects, newSuspension } from './step-suspension.ts';
import type { Step } from './step.ts';

type LoadInput = Extract<Input, { kind: 'load' }>;

/** G6: loads what is empty, confirms what stands, refuses the rest. */
export function load(state: AgentState, input: LoadInput): Step {
  const standing = state.rings.get(input.ring);
  if (standing === undefined) {
    const other = [...state.rings.values()].find(({ load: id }) => id === input.load);
    if (other === undefined) return started(state, input, { records: [admitted(input)], waiting: anew });
    const error = new P4Error('INVALID_ARGUMENT', {
      what: 'load id',
      found: `that of ${other.ring}`,
      expected: 'a new one',
    });
    return refused(state, input.call, error);
  }
  const same = standing.kind === 'live' ? standing.generation === input.generation : input.digestMatches;
  if (!same) return refused(state, input.call, new P4Error('RING_TAKEN', { ring: input.ring, host: state.host }));
  if (standing.planDigest !== input.planDigest || standing.load !== input.load) {
    return refused(state, input.call, new P4Error('PLAN_DIFFERS', { ring: input.ring, host: state.host }));
  }
  if (standing.kind === 'live') return again(state, standing, input);
  if (standing.fault !== null) return refused(state, input.call, standing.fault);
  const empty = new P4Error('RING_EMPTY', { ring: input.ring, host: state.host });
  const suspension = newSuspension(state.nextSuspension, empty, input.atMs);
  const waiting = { memory: standing.memory, suspension };
  return started(state, input, { records: termsTold(standing.terms, input), waiting });
}

function again(former: AgentState, standing: LiveRing, input: LoadInput): Step {
  const ring: LiveRing = { ...standing, ...underTerms(standing, termsOf(input)) };
  const state = withRing(former, ring);
  const records = termsTold(termsOf(standing), input);
  switch (ring.phase.kind) {
    case 'loading': {
      const phase = { ...ring.phase, calls: [...ring.phase.calls, input.call] };
      return { state: withRing(state, { ...ring, phase }), records, effects: [] };
    }
    case 'loaded':
    case 'linking':
    case 'unlinked':
    case 'linked':
    case 'probing':
    case 'ready':
      return { ...replied(state, input.call, { kind: 'loaded', confirmed: true }), records };
    case 'ending':
      return refused(former, input.call, new P4Error('RING_ENDING', { ring: input.ring, host: state.host }));
  }
}

/** A ring's next links are dialled where its agents were said to be last, and an agent that starts again knows it. */
function termsTold(former: LoadTerms, input: LoadInput): readonly JournalRecord[] {
  const terms = termsOf(input);
  return sameTerms(former, terms) ? [] : [{ kind: 'load-told', load: input.load, ...terms }];
}

function admitted(input: LoadInput): JournalRecord {
  const { ring, load, generationDigest, planDigest, assignment } = input;
  return { kind: 'load-admitted', ring, load, generationDigest, planDigest, assignment };
}

/** What a load comes to: nothing where it is the first, else what has waited for it. */
type Waiting = Pick<LiveRing, 'memory' | 'suspension'>;

const anew: Waiting = { memory: emptyMemory, suspension: null };

function started(
  state: AgentState,
  input: LoadInput,
  { records, waiting }: { readonly records: readonly JournalRecord[]; readonly waiting: Waiting },
): Step {
  const here = input.plan.stages.filter(({ host }) => host === state.host).map(({ index }) => index);
  if (here.length === 0) {
    return refused(state, input.call, new P4Error('NO_STAGE_HERE', { ring: input.ring, host: state.host }));
  }
  const { ring, load, generation, planDigest, generationDigest, plan, placements } = input;
  const starts = startsOf(state, input, here);
  const live: LiveRing = {
    kind: 'live',
    ...{ ring, load, generation, planDigest, generationDigest, plan, placements },
    nodes: new Map<NodeIndex, NodeState>(
      starts.map(({ order, incarnation }) => [order.node, { kind: 'loading', incarnation }]),
    ),
    phase: { kind: 'loading', calls: [input.call] },
    links: [],
    head: null,
    ...waiting,
  };
  const nextIncarnation = state.nextIncarnation + starts.length;
  const nextSuspension = state.nextSuspension + (live.suspension === null ? 0 : 1);
  const told = live.suspension !== null && isHead(live, state.host) ? deadlineEffects(live, live.suspension) : [];
  return {
    state: { ...withRing(state, live), nextIncarnation, nextSuspension },
    records,
    effects: [...starts, ...told],
  };
}

export function unload(state: AgentState, input: Extract<Input, { kind: 'unload' }>): Step {
  const standing = state.rings.get(input.ring);
  if (standing?.kind === 'claimed' && !input.digestMatches) {
    return refused(state, input.call, generationMismatch(state, input.ring));
  }
  const addressed = standing?.kind === 'claimed' ? null : addressedRing(state, input);
  return addressed?.kind === 'refused' ? refused(state, input.call, addressed.error) : givenUp(state, input, 'unload');
}

/** G7: whoever may do that is the shell's to know. */
export function forget(state: AgentState, input: Extract<Input, { kind: 'forget' }>): Step {
  if (state.rings.has(input.ring)) return givenUp(state, input, 'forget');
  return refused(state, input.call, new P4Error('RING_UNKNOWN', { ring: input.ring, host: state.host }));
}

function givenUp(
  state: AgentState,
  { ring: name, call }: Extract<Input, { kind: 'unload' | 'forget' }>,
  by: 'unload' | 'forget',
): Step {
  const standing = state.rings.get(name);
  if (standing === undefined) return unchanged(state);
  if (standing.kind === 'claimed') {
    const reply = { kind: 'unloaded', stages: 0 } as const;
    return { ...claimEnded(state, standing, by), effects: [{ kind: 'reply', call, reply }] };
  }
  if (standing.phase.kind === 'ending') {
    const phase = { ...standing.phase, calls: [...standing.phase.calls, call] };
    return unchanged(withRing(state, { ...standing, phase }));
  }
  const error = new P4Error('RING_UNLOADED', { ring: name });
  return endRing(state, standing, { calls: [call], failure: null, error, by });
}
