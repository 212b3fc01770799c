/** What comes back round the ring: draws, receipts, the probe; and the schedule that feeds the next rows. */
import { P4Error } from '../protocol/errors.ts';
import { unreachable } from '../protocol/assert.ts';
import type { HopItem } from '../protocol/hop-items.ts';
import type { NodeIndex } from '../protocol/ids.ts';
import type { CallId } from './calls.ts';
import type { Effect } from './effects.ts';
import { followed, unchangedHead, type HeadStep, type LoadAddress } from './head/head-step.ts';
import { changedHead, type HeadState } from './head/head-state.ts';
import { keepReturned } from './head/prefix-reuse.ts';
import { recoveredHead } from './head/recovery.ts';
import { observed } from './head/pace.ts';
import { drawn, failed, settled } from './head/requests.ts';
import { schedule } from './head/schedule.ts';
import type { Input } from './inputs.ts';
import {
  addressedRing,
  headMissing,
  refused,
  replied,
  replyTo,
  ringOfLoad,
  unchanged,
  withHead,
  withRing,
} from './outcome.ts';
import type { AgentState, LiveRing, Suspension } from './state.ts';
import { suspend } from './step-suspension.ts';
import type { Step } from './step.ts';

/** One that joins a probe on its way hears how long that one's own round took. */
export function probe(state: AgentState, input: Extract<Input, { kind: 'probe' }>): Step {
  const addressed = addressedRing(state, input);
  if (addressed.kind === 'refused') return refused(state, input.call, addressed.error);
  const { ring } = addressed;
  if (ring.head === null) return refused(state, input.call, headMissing(ring, state.host));
  if (ring.phase.kind === 'ready') return replied(state, input.call, { kind: 'probed', roundMs: 0 });
  const { nonce, atMs, call } = input;
  if (ring.phase.kind === 'probing') {
    const calls = [...ring.phase.calls, call];
    return unchanged(withRing(state, { ...ring, phase: { ...ring.phase, calls } }));
  }
  if (ring.phase.kind !== 'linked') {
    return refused(state, input.call, new P4Error('RING_NOT_READY', { ring: ring.ring, phase: ring.phase.kind }));
  }
  return probed(state, ring, { calls: [call], nonce, sinceMs: atMs });
}

/** The probe of a head whose ring was lost: nobody asked for it. */
export function probeAgain(
  state: AgentState,
  ring: LiveRing,
  { number, attempt, atMs }: Pick<Suspension, 'number' | 'attempt'> & { readonly atMs: number },
): Step {
  const nonce = (number * 0x1_0000 + attempt) % 2 ** 32;
  return probed(state, ring, { calls: [], nonce, sinceMs: atMs });
}

/** Nothing but the probe goes round before the ring is ready. */
function probed(
  state: AgentState,
  ring: LiveRing,
  probe: { readonly calls: readonly CallId[]; readonly nonce: number; readonly sinceMs: number },
): Step {
  if (ring.head === null) return unchanged(state);
  const { nonce } = probe;
  const head = { ...ring.head, framesInFlight: ring.head.framesInFlight + 1 };
  const at = { ring: ring.ring, load: ring.load };
  return {
    state: withRing(state, { ...ring, head, phase: { kind: 'probing', ...probe } }),
    records: [],
    effects: [
      { kind: 'send-frame', ...at, items: [{ kind: 'probe', nonce }], tokens: [] },
      { kind: 'await-probe', ...at, nonce },
    ],
  };
}

export function probeTimeout(state: AgentState, input: Extract<Input, { kind: 'probe-timeout' }>): Step {
  const ring = ringOfLoad(state, input);
  if (ring?.phase.kind !== 'probing' || ring.phase.nonce !== input.nonce) return unchanged(state);
  return suspend(state, ring, { error: new P4Error('PROBE_LOST', { ring: input.ring }), atMs: input.atMs });
}

export function returned(state: AgentState, input: Extract<Input, { kind: 'returned' }>): Step {
  const ring = ringOfLoad(state, input);
  if (ring === null || ring.head === null) return unchanged(state);
  // What comes from before a loss is of stages that are empty by now.
  if (ring.phase.kind !== 'ready' && ring.phase.kind !== 'probing') return unchanged(state);
  const at: LoadAddress = { ring: ring.ring, load: ring.load };
  const stranger = strangeReceipt(ring, input.items);
  if (stranger !== null) return stopStranger(state, ring, { node: stranger, atMs: input.atMs });
  let headStep = unchangedHead(changedHead(ring.head, { pace: observed(ring.head.pace, input.slowest) }));
  let live = ring;
  for (const item of input.items) {
    if (item.kind === 'probe') {
      const answer = probeReturned(live, headStep.head, { nonce: item.nonce, atMs: input.atMs });
      live = answer.ring;
      headStep = followed(headStep, answer);
    } else headStep = followed(headStep, itemReturned(headStep.head, at, item));
  }
  return pumped(state, live, headStep);
}

function itemReturned(head: HeadState, at: LoadAddress, item: Exclude<HopItem, { kind: 'probe' }>): HeadStep {
  switch (item.kind) {
    case 'token':
      return drawn(head, at, item);
    case 'end':
      return settled(head, at, item);
    case 'failed':
      return failed(head, at, item);
    case 'keep':
      return unchangedHead(keepReturned(head, item));
    case 'open':
    case 'adopt':
    case 'begin':
    case 'rows':
    case 'truncate':
    case 'close':
    case 'drop':
      return unchangedHead(head);
    default:
      return unreachable(item);
  }
}

/** The ring is whole. What waited goes on (R3). */
function probeReturned(
  ring: LiveRing,
  head: HeadState,
  { nonce, atMs }: { readonly nonce: number; readonly atMs: number },
): HeadStep & { readonly ring: LiveRing } {
  if (ring.phase.kind !== 'probing' || ring.phase.nonce !== nonce) return { ring, ...unchangedHead(head) };
  const { calls, sinceMs } = ring.phase;
  const replies = replyTo(calls, { kind: 'probed', roundMs: atMs - sinceMs });
  const resume: Effect[] =
    ring.suspension === null ? [] : [{ kind: 'publish-resume', ring: ring.ring, load: ring.load }];
  return {
    ring: { ...ring, phase: { kind: 'ready' }, suspension: null },
    head: recoveredHead(head),
    records: [{ kind: 'ring-ready', load: ring.load }],
    effects: [...replies, ...resume],
  };
}

/** G5: the node whose receipt is of another generation than its load's. */
function strangeReceipt(ring: LiveRing, items: readonly HopItem[]): NodeIndex | null {
  for (const item of items) {
    if (item.kind !== 'end') continue;
    const receipt = item.receipts.find(({ sourceGeneration }) => sourceGeneration !== ring.generation);
    if (receipt !== undefined) return receipt.node;
  }
  return null;
}

/**
 * The ring is suspended at once, and with its links every agent's part of it; a node of this host is stopped (G5). One of
 * another host refuses the new connection by which its agent empties it, if it is what it seems.
 */
function stopStranger(
  state: AgentState,
  ring: LiveRing,
  { node, atMs }: { readonly node: NodeIndex; readonly atMs: number },
): Step {
  const host = ring.plan.stages[node]?.host ?? 'unknown';
  const error = new P4Error('RECEIPT_GENERATION_MISMATCH', { ring: ring.ring, node, host });
  return suspend(state, ring, { error, atMs, stranger: node });
}

export function frameFinished(state: AgentState, input: Extract<Input, { kind: 'frame-finished' }>): Step {
  const ring = ringOfLoad(state, input);
  if (ring === null || ring.head === null || ring.head.framesInFlight === 0) return unchanged(state);
  const head = changedHead(ring.head, { framesInFlight: ring.head.framesInFlight - 1 });
  return pumped(state, ring, unchangedHead(head));
}

/** Takes a head's decision into the state and sends what can go round now: nothing before the ring is ready. */
export function pumped(state: AgentState, ring: LiveRing, { head, records, effects }: HeadStep): Step {
  if (ring.phase.kind !== 'ready') return { state: withHead(state, ring, head), records, effects };
  const { head: fed, frames } = schedule(head);
  if (frames.length === 0) return { state: withHead(state, ring, fed), records, effects };
  const { ring: name, load } = ring;
  const sends = frames.map(({ items, tokens }): Effect => ({ kind: 'send-frame', ring: name, load, items, tokens }));
  return { state: withHead(state, ring, fed), records, effects: [...sends, ...effects] };
}
