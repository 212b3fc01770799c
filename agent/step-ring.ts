/** What comes back round the ring: draws, receipts, the probe; and the schedule that feeds the next rows. */
import { P4Error } from '../protocol/errors.ts';
import { unreachable } from '../protocol/assert.ts';
import type { HopItem } from '../protocol/hop-items.ts';
import type { Effect } from './effects.ts';
import { followed, unchangedHead, type HeadStep, type LoadAddress } from './head/head-step.ts';
import type { HeadState } from './head/head-state.ts';
import { drawn, failed, settled } from './head/requests.ts';
import { schedule } from './head/schedule.ts';
import type { Input } from './inputs.ts';
import { addressedRing, refused, replied, ringOfLoad, unchanged, withRing } from './outcome.ts';
import type { AgentState, LiveRing } from './state.ts';
import { loseRing } from './step-stage.ts';
import type { Step } from './step.ts';

export function probe(state: AgentState, input: Extract<Input, { kind: 'probe' }>): Step {
  const addressed = addressedRing(state, input);
  if (addressed.kind === 'refused') return refused(state, input.call, addressed.error);
  const { ring } = addressed;
  if (ring.head === null) {
    return refused(state, input.call, new P4Error('NOT_THE_HEAD', { ring: ring.ring, host: state.host }));
  }
  if (ring.phase.kind === 'lost') return refused(state, input.call, ring.phase.error);
  if (ring.phase.kind === 'ready') return replied(state, input.call, { kind: 'probed', roundMs: 0 });
  if (ring.phase.kind !== 'linked') {
    return refused(state, input.call, new P4Error('RING_NOT_READY', { ring: ring.ring, phase: ring.phase.kind }));
  }
  const { nonce, atMs } = input;
  const head = { ...ring.head, outbox: [...ring.head.outbox, { kind: 'probe', nonce } as const] };
  const probing: LiveRing = { ...ring, phase: { kind: 'probing', call: input.call, nonce, sinceMs: atMs } };
  const next = pumped(state, probing, unchangedHead(head));
  return { ...next, effects: [...next.effects, { kind: 'await-probe', ring: ring.ring, nonce }] };
}

export function probeTimeout(state: AgentState, input: Extract<Input, { kind: 'probe-timeout' }>): Step {
  const ring = state.rings.get(input.ring);
  if (ring?.kind !== 'live' || ring.phase.kind !== 'probing' || ring.phase.nonce !== input.nonce)
    return unchanged(state);
  return loseRing(state, ring, { kind: 'lose', error: new P4Error('PROBE_LOST', { ring: input.ring }) });
}

export function returned(state: AgentState, input: Extract<Input, { kind: 'returned' }>): Step {
  const ring = ringOfLoad(state, input);
  if (ring === null || ring.head === null) return unchanged(state);
  if (ring.phase.kind === 'lost' || ring.phase.kind === 'ending') return unchanged(state);
  const at: LoadAddress = { ring: ring.ring, load: ring.load };
  const stranger = strangeReceipt(ring, input.items);
  if (stranger !== null) return stopStranger(state, ring, stranger);
  let headStep = unchangedHead(ring.head);
  let live = ring;
  for (const item of input.items) {
    if (item.kind === 'probe') {
      const answer = probeReturned(live, item.nonce, input.atMs);
      live = answer.ring;
      headStep = followed(headStep, { head: headStep.head, records: answer.records, effects: answer.effects });
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
    case 'open':
    case 'begin':
    case 'rows':
    case 'truncate':
    case 'close':
      return unchangedHead(head);
    default:
      return unreachable(item);
  }
}

function probeReturned(
  ring: LiveRing,
  nonce: number,
  atMs: number,
): { ring: LiveRing; records: HeadStep['records']; effects: readonly Effect[] } {
  if (ring.phase.kind !== 'probing' || ring.phase.nonce !== nonce) return { ring, records: [], effects: [] };
  const { call, sinceMs } = ring.phase;
  return {
    ring: { ...ring, phase: { kind: 'ready' } },
    records: [{ kind: 'ring-ready', load: ring.load }],
    effects: [{ kind: 'reply', call, reply: { kind: 'probed', roundMs: atMs - sinceMs } }],
  };
}

/** G5: the node whose receipt is of another generation than its load's. */
function strangeReceipt(ring: LiveRing, items: readonly HopItem[]): number | null {
  for (const item of items) {
    if (item.kind !== 'end') continue;
    const receipt = item.receipts.find(({ sourceGeneration }) => sourceGeneration !== ring.generation);
    if (receipt !== undefined) return receipt.node;
  }
  return null;
}

/** The ring is lost at once, and with its links every agent's part of it; a node of this host is stopped too (G5). */
function stopStranger(state: AgentState, ring: LiveRing, node: number): Step {
  const host = ring.plan.stages[node]?.host ?? 'unknown';
  const error = new P4Error('RECEIPT_GENERATION_MISMATCH', { ring: ring.ring, node, host });
  const next = loseRing(state, ring, { kind: 'lose', error });
  const lost = next.state.rings.get(ring.ring);
  const local = [...ring.nodes].find(([index]) => index === node);
  if (local === undefined || lost?.kind !== 'live') return next;
  const [index, { incarnation }] = local;
  const nodes = new Map(lost.nodes).set(index, { kind: 'stopping', incarnation });
  return {
    ...next,
    state: withRing(next.state, { ...lost, nodes }),
    effects: [...next.effects, { kind: 'stop-stage', ring: ring.ring, load: ring.load, node: index, incarnation }],
  };
}

export function frameFinished(state: AgentState, input: Extract<Input, { kind: 'frame-finished' }>): Step {
  const ring = ringOfLoad(state, input);
  if (ring === null || ring.head === null || ring.head.framesInFlight === 0) return unchanged(state);
  const head = { ...ring.head, framesInFlight: ring.head.framesInFlight - 1 };
  return pumped(state, ring, unchangedHead(head));
}

/** Takes a head's decision into the state and sends what can go round now. */
export function pumped(state: AgentState, ring: LiveRing, { head, records, effects }: HeadStep): Step {
  const { head: fed, frames } = schedule(head);
  const { ring: name, load } = ring;
  const sends = frames.map(({ items, tokens }): Effect => ({ kind: 'send-frame', ring: name, load, items, tokens }));
  return { state: withRing(state, { ...ring, head: fed }), records, effects: [...sends, ...effects] };
}
