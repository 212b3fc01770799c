/** What the shell's timers bring: the next try to bring a suspended ring back (R2), and the end of its requests' patience (R4). */
import { limits } from '../protocol/limits.ts';
import { followed } from './head/head-step.ts';
import { expiredHead, expiredMemory } from './head/recovery.ts';
import { refuseQueue } from './head/sessions.ts';
import type { Input } from './inputs.ts';
import { lossText, ringOfLoad, unchanged, withRing } from './outcome.ts';
import { startsOf } from './stage-starts.ts';
import type { AgentState, LiveRing, Suspension } from './state.ts';
import { expiredClaim } from './step-claim.ts';
import { dialled } from './step-link.ts';
import { deadlineEffects, loadsStages } from './step-suspension.ts';
import type { Step } from './step.ts';

/** The time of a try has come: lost stages are started again, or edges that do not stand are dialled. */
export function retry(state: AgentState, input: Extract<Input, { kind: 'retry' }>): Step {
  const ring = ringOfLoad(state, input);
  if (ring?.suspension?.number !== input.suspension || ring.suspension.attempt !== input.attempt)
    return unchanged(state);
  // What was lost of a ring that is taken down stays so.
  if (ring.phase.kind === 'ending') return unchanged(state);
  const lost = [...ring.nodes].filter(([, { kind }]) => kind === 'lost').map(([node]) => node);
  if (lost.length === 0)
    return ring.phase.kind === 'unlinked' ? dialled(state, ring, { calls: [], atMs: input.atMs }) : unchanged(state);
  const starts = startsOf(state, ring, lost);
  const nodes = new Map(ring.nodes);
  for (const { order, incarnation } of starts) nodes.set(order.node, { kind: 'loading', incarnation });
  const nextIncarnation = state.nextIncarnation + starts.length;
  return { state: { ...withRing(state, { ...ring, nodes }), nextIncarnation }, records: [], effects: starts };
}

/** R4: requests fail, unless a stage loads, or did within the deadline: then they wait for that, up to a limit (R1). */
export function recoveryDeadline(state: AgentState, input: Extract<Input, { kind: 'recovery-deadline' }>): Step {
  const standing = state.rings.get(input.ring);
  if (standing?.kind === 'claimed') return expiredClaim(state, standing, input);
  const ring = ringOfLoad(state, input);
  if (ring?.suspension?.number !== input.suspension || ring.suspension.isOverdue) return unchanged(state);
  // What hangs on a ring that is taken down has ended with it.
  if (ring.phase.kind === 'ending') return unchanged(state);
  const { suspension } = ring;
  const at = { ring: ring.ring, load: ring.load };
  const deadlineMs = ring.plan.deadlineSeconds * 1000;
  // Whole milliseconds, as timers have them: a rest of one is waited for once, not over and over.
  const ms = loadsStages(ring) ? deadlineMs : Math.ceil(deadlineMs - (input.atMs - suspension.progressMs));
  if (ms > 0 && input.atMs - suspension.sinceMs < deadlineMs + limits.reloadMs) {
    return { state, records: [], effects: deadlineEffects(ring, suspension, ms) };
  }
  const overdue = { ...ring, suspension: { ...suspension, isOverdue: true } };
  const detail = deadlineText(ring, suspension);
  if (ring.head === null) {
    // Where the head is and has not come up, its requests are known from the journal.
    const { memory, records } = expiredMemory(ring.memory, ring.load, detail);
    return { state: withRing(state, { ...overdue, memory }), records, effects: [] };
  }
  const refused = refuseQueue(ring.head, suspension.error);
  const { head, records, effects } = followed(refused, expiredHead(refused.head, at, detail));
  return { state: withRing(state, { ...overdue, head }), records, effects };
}

function deadlineText({ plan }: LiveRing, { error, attempt }: Suspension): string {
  const tries = attempt === 1 ? 'one try' : `${attempt} tries`;
  const { node, host } = error.facts;
  const stage = node === undefined || host === undefined ? '' : `stage ${String(node)} on host ${String(host)}: `;
  return `${stage}${lossText(error)}; not back within ${plan.deadlineSeconds} s (${tries} failed)`;
}
