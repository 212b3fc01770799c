/**
 * A ring's name on this host belongs to a load of which nothing runs (R2): found in the journal at start, it waits for its
 * stages to tell of themselves, or for its loader.
 */
import { P4Error } from '../protocol/errors.ts';
import type { NodeIndex } from '../protocol/ids.ts';
import type { Effect } from './effects.ts';
import { abandonedRequests, expiredMemory } from './head/recovery.ts';
import type { HeadMemory } from './head/memory.ts';
import type { Input } from './inputs.ts';
import { claimFault, lossText, unchanged, withoutRing, withRing } from './outcome.ts';
import type { JournalRecord } from './records.ts';
import { startsOf } from './stage-starts.ts';
import { isHead, type AgentState, type ClaimedRing, type LiveRing, type NodeState } from './state.ts';
import { deadlineEffects, newSuspension } from './step-suspension.ts';
import type { Step } from './step.ts';

/** What its requests wait for is not lost yet: the clock of their deadline starts. */
export function restored(state: AgentState, input: Extract<Input, { kind: 'restored' }>): Step {
  const { ring, load, planDigest, generationDigest, memory, terms, fault } = input;
  const suspension = state.nextSuspension;
  const claimed: ClaimedRing = {
    ...{ kind: 'claimed', ring, load, planDigest, generationDigest, terms, fault, memory, suspension },
  };
  const next = withRing({ ...state, nextSuspension: suspension + 1 }, claimed);
  const waits = [...memory.requests.values()].some(({ kind }) => kind === 'running');
  const ms = terms.deadlineSeconds * 1000;
  const effects: Effect[] = waits ? [{ kind: 'await-deadline', ring, load, suspension, ms }] : [];
  return { state: next, records: [], effects };
}

/** R2: some of its stages live. Those are made empty, the others started; the ring comes back from there. */
export function adopted(state: AgentState, input: Extract<Input, { kind: 'adopted' }>): Step {
  const claimed = state.rings.get(input.ring);
  if (claimed?.kind !== 'claimed' || claimed.load !== input.load) return unchanged(state);
  const { ring, load, generation, plan, placements, stages, highestStart, atMs } = input;
  const here = plan.stages.filter(({ host }) => host === state.host).map(({ index }) => index);
  const counted = { ...state, nextIncarnation: Math.max(state.nextIncarnation, highestStart + 1) };
  const missing = here.filter((node) => !stages.has(node));
  const starts = startsOf(counted, { ring, load, generation, plan, placements }, missing);
  const nodes = new Map<NodeIndex, NodeState>(
    starts.map(({ order, incarnation }) => [order.node, { kind: 'loading', incarnation }]),
  );
  for (const [node, incarnation] of stages) nodes.set(node, { kind: 'attaching', incarnation });
  // A number of its own: the timer of the claim tells nothing any more.
  const suspension = newSuspension(
    state.nextSuspension,
    new P4Error('AGENT_RESTARTED', { ring, host: state.host }),
    atMs,
  );
  const live: LiveRing = {
    kind: 'live',
    ...{ ring, load, generation, plan, placements, nodes, suspension },
    ...{ planDigest: claimed.planDigest, generationDigest: claimed.generationDigest, memory: claimed.memory },
    ...{ phase: { kind: 'loading', calls: [] }, links: [], head: null },
  };
  const attach = [...stages].map(([node, incarnation]): Effect => ({
    kind: 'attach-stage',
    ...{ ring, load, node, incarnation },
  }));
  return {
    state: {
      ...withRing(counted, live),
      nextIncarnation: counted.nextIncarnation + starts.length,
      nextSuspension: suspension.number + 1,
    },
    records: [],
    effects: [...attach, ...starts, ...(isHead(live, state.host) ? deadlineEffects(live, suspension) : [])],
  };
}

/** R4, for a ring whose loader has not come. */
export function expiredClaim(
  state: AgentState,
  claimed: ClaimedRing,
  { load, suspension }: { readonly load: ClaimedRing['load']; readonly suspension: number },
): Step {
  if (claimed.load !== load || claimed.suspension !== suspension) return unchanged(state);
  const { memory, records } = expiredMemory(claimed.memory, load, lossText(claimFault(state, claimed)));
  return { state: withRing(state, { ...claimed, memory }), records, effects: [] };
}

/** Gives the name up; what still waits for the load ends with it. */
export function claimEnded(state: AgentState, claimed: ClaimedRing, by: 'unload' | 'forget'): Omit<Step, 'effects'> {
  const { ring, load, memory } = claimed;
  const records: JournalRecord[] = [...abandoned(memory, load), { kind: 'load-ended', load, by }];
  return { state: withoutRing(state, ring), records };
}

const abandoned = (memory: HeadMemory, load: ClaimedRing['load']): readonly JournalRecord[] =>
  abandonedRequests(memory, load, 'the ring was given up');
