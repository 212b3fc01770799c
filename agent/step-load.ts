/** A ring's claim on this host: load (G6), unload, and what a restart finds in the journal. */
import { P4Error } from '../protocol/errors.ts';
import { newLoadIds, type AgentState, type FirstIds, type LiveRing } from './state.ts';
import { present } from '../protocol/assert.ts';
import type { StagePlan } from '../protocol/plan.ts';
import type { StartStage } from './effects.ts';
import type { Input } from './inputs.ts';
import { addressedRing, generationMismatch, refused, replied, unchanged, withoutRing, withRing } from './outcome.ts';
import { loseRing, stopNodes } from './step-stage.ts';
import type { Step } from './step.ts';
import type { JournalRecord } from './records.ts';

type LoadInput = Extract<Input, { kind: 'load' }>;

export function restored(state: AgentState, input: Extract<Input, { kind: 'restored' }>): Step {
  const { ring, load, planDigest, generationDigest, firstIds } = input;
  return unchanged(withRing(state, { kind: 'claimed', ring, load, planDigest, generationDigest, firstIds }));
}

/** G6: loads what is empty, confirms what stands, refuses the rest. */
export function load(state: AgentState, input: LoadInput): Step {
  const standing = state.rings.get(input.ring);
  if (standing === undefined) {
    const other = [...state.rings.values()].find(({ load: id }) => id === input.load);
    if (other === undefined) return started(state, input, { records: [admitted(input)], firstIds: newLoadIds });
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
  return started(state, input, { records: [], firstIds: standing.firstIds });
}

function again(state: AgentState, ring: LiveRing, input: LoadInput): Step {
  switch (ring.phase.kind) {
    case 'loading': {
      const phase = { ...ring.phase, calls: [...ring.phase.calls, input.call] };
      return unchanged(withRing(state, { ...ring, phase }));
    }
    case 'loaded':
    case 'linking':
    case 'linked':
    case 'probing':
    case 'ready':
      return replied(state, input.call, { kind: 'loaded', confirmed: true });
    case 'lost': {
      const stopping = stopNodes(ring);
      const { nextSession, nextRequest } = ring.head ?? {
        nextSession: ring.firstIds.session,
        nextRequest: ring.firstIds.request,
      };
      const next = started(state, input, { records: [], firstIds: { session: nextSession, request: nextRequest } });
      return { ...next, effects: [...stopping.effects, ...next.effects] };
    }
    case 'ending':
      return refused(state, input.call, new P4Error('RING_ENDING', { ring: input.ring, host: state.host }));
  }
}

function admitted(input: LoadInput): JournalRecord {
  const { ring, load, generationDigest, planDigest, assignment } = input;
  return { kind: 'load-admitted', ring, load, generationDigest, planDigest, assignment };
}

function started(
  state: AgentState,
  input: LoadInput,
  { records, firstIds }: { readonly records: readonly JournalRecord[]; readonly firstIds: FirstIds },
): Step {
  const stages = input.plan.stages.filter(({ host }) => host === state.host);
  if (stages.length === 0) {
    return refused(state, input.call, new P4Error('NO_STAGE_HERE', { ring: input.ring, host: state.host }));
  }
  const { ring, load, generation, planDigest, generationDigest, plan, placements } = input;
  const starts = stages.map((stage, count) => startOf(input, stage, state.nextIncarnation + count));
  const live: LiveRing = {
    kind: 'live',
    ...{ ring, load, generation, planDigest, generationDigest, plan, placements },
    nodes: new Map(starts.map(({ order, incarnation }) => [order.node, { kind: 'loading', incarnation }])),
    phase: { kind: 'loading', calls: [input.call] },
    links: [],
    firstIds,
    head: null,
  };
  const nextIncarnation = state.nextIncarnation + starts.length;
  return { state: { ...withRing(state, live), nextIncarnation }, records, effects: starts };
}

function startOf(input: LoadInput, stage: StagePlan, incarnation: number): StartStage {
  const { ring, load, plan, generation } = input;
  const { contextTokens, sessions, kv, decode, stages } = plan;
  const { index: node, layers, device, threads, confinement } = stage;
  return {
    kind: 'start-stage',
    incarnation,
    order: {
      ...{ ring, load, node },
      stage: {
        ...{ ring, node, stages: stages.length, generation: generation.toString() },
        sliceId: present(input.placements[node], 'every stage has a placement').sliceId,
        modelLayers: present(stages.at(-1), 'a plan has stages').layers.last + 1,
        ...{ layers, contextTokens, sessions, kv, decode, device, threads },
        ...(confinement === undefined ? {} : { confinement }),
      },
    },
  };
}

export function unload(state: AgentState, input: Extract<Input, { kind: 'unload' }>): Step {
  const standing = state.rings.get(input.ring);
  if (standing?.kind === 'claimed') {
    if (!input.digestMatches) return refused(state, input.call, generationMismatch(state, input.ring));
    return {
      state: withoutRing(state, input.ring),
      records: [{ kind: 'load-ended', load: standing.load, by: 'unload' }],
      effects: [{ kind: 'reply', call: input.call, reply: { kind: 'unloaded', stages: 0 } }],
    };
  }
  const addressed = addressedRing(state, input);
  if (addressed.kind === 'refused') return refused(state, input.call, addressed.error);
  const { ring } = addressed;
  if (ring.phase.kind === 'ending') {
    const phase = { ...ring.phase, calls: [...ring.phase.calls, input.call] };
    return unchanged(withRing(state, { ...ring, phase }));
  }
  const error = new P4Error('RING_UNLOADED', { ring: input.ring });
  return loseRing(state, ring, { kind: 'end', calls: [input.call], failure: null, error });
}
