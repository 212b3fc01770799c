/** The life of a session at the head: a slot and its KV lease on every stage, from `open` to `close`. */
import { P4Error } from '../../protocol/errors.ts';
import type { FinishReason } from '../../protocol/finish.ts';
import { sessionId, slotIndex, type RequestId, type SessionId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { CallId, CallReply } from '../calls.ts';
import type { Effect } from '../effects.ts';
import { historyOf, marksOf, type HeadState, type QueuedCall, type RequestState } from './head-state.ts';
import { followed, repliedHead, unchangedHead, type HeadStep, type LoadAddress } from './head-step.ts';
import { leaseEnded } from './prefix-reuse.ts';
import { endRequest, settle, stalledRing } from './requests.ts';

/** Opens a session where a slot is free; else the call waits for one, if it will and the queue has room. */
export function openSession(
  head: HeadState,
  at: LoadAddress,
  { call, owner, waits }: QueuedCall & { readonly waits: boolean },
): HeadStep {
  // Who waits already comes first.
  const free = head.queue.length > 0 ? -1 : head.slots.indexOf(null);
  const stalled = stalledRing(head, at);
  if (stalled !== null) return repliedHead(head, call, { kind: 'refused', error: stalled });
  if (free >= 0) return opened(head, at, { call, owner, free });
  const waiting = head.queue.length;
  if (waits && waiting < limits.waitingSessions) {
    return unchangedHead({ ...head, queue: [...head.queue, { call, owner }] });
  }
  const retryAfterSeconds = limits.busyRetrySeconds;
  const error = new P4Error('RING_BUSY', { ring: at.ring, sessions: head.slots.length, waiting, retryAfterSeconds });
  return repliedHead(head, call, { kind: 'refused', error });
}

/** Opens the session of the call that has waited longest. @param call the one that was meant: it may have gone since */
export function serveQueue(head: HeadState, at: LoadAddress, call: CallId): HeadStep {
  const free = head.slots.indexOf(null);
  const [first, ...queue] = head.queue;
  if (first === undefined || free < 0) return unchangedHead(head);
  if (first.call !== call) return served(unchangedHead(head), at);
  return served(opened({ ...head, queue }, at, { ...first, free }), at);
}

/** With who is to be served next, if a slot is free. */
function served(step: HeadStep, at: LoadAddress): HeadStep {
  const [next] = step.head.queue;
  if (next === undefined || !step.head.slots.includes(null)) return step;
  return { ...step, effects: [...step.effects, { kind: 'serve-queue', ...at, call: next.call }] };
}

/** Whoever waited for a session has gone, or was refused it. */
export function leaveQueue(head: HeadState, at: LoadAddress, call: CallId): HeadStep {
  const queue = head.queue.filter((waiting) => waiting.call !== call);
  if (queue.length === head.queue.length) return unchangedHead(head);
  const error = new P4Error('CANCELLED', { by: 'its caller' });
  return served(repliedHead({ ...head, queue }, call, { kind: 'refused', error }), at);
}

/** Nobody gets a session any more. */
export function refuseQueue(head: HeadState, error: P4Error): HeadStep {
  const replies = head.queue.map(({ call }): Effect => ({ kind: 'reply', call, reply: { kind: 'refused', error } }));
  return { head: { ...head, queue: [] }, records: [], effects: replies };
}

function opened(
  head: HeadState,
  at: LoadAddress,
  { call, owner, free }: QueuedCall & { readonly free: number },
): HeadStep {
  const session = head.nextSession;
  const slot = slotIndex(free);
  return {
    head: {
      ...head,
      nextSession: sessionId(session + 1),
      slots: head.slots.with(free, session),
      sessions: head.sessions.with(session, {
        id: session,
        slot,
        owner,
        history: historyOf([]),
        rows: marksOf([]),
        sentRows: 0,
        request: null,
        ending: null,
      }),
      outbox: [...head.outbox, { kind: 'open', session, slot }],
    },
    records: [{ kind: 'session-opened', load: at.load, session, slot }],
    effects: [
      { kind: 'reply', call, reply: { kind: 'session-opened', session, contextTokens: head.contextTokens } },
      // Whoever asked may never hear of it, or be refused because the journal fails.
      { kind: 'await-lease', of: { ...at, session } },
    ],
  };
}

/** For whoever takes a session's lease up: it is there, or it is not. */
export function resumeSession(
  head: HeadState,
  at: LoadAddress,
  { call, session }: { readonly call: CallId; readonly session: SessionId },
): HeadStep {
  const reply: CallReply = head.sessions.has(session)
    ? { kind: 'session-opened', session, contextTokens: head.contextTokens }
    : { kind: 'refused', error: new P4Error('SESSION_UNKNOWN', { ring: at.ring, session }) };
  return repliedHead(head, call, reply);
}

/** Ends the session's request, if one runs, and gives its slot to whoever waits; its KV is freed, or kept, on the way round. */
export function closeSession(head: HeadState, at: LoadAddress, session: SessionId): HeadStep {
  const state = head.sessions.get(session);
  if (state === undefined) return unchangedHead(head);
  const ended = endSessionRequest(head, at, { request: state.request, reason: 'cancelled', detail: '' });
  const { kept, items } = leaseEnded(ended.head, state);
  const closed = followed(ended, {
    head: {
      ...ended.head,
      slots: ended.head.slots.with(state.slot, null),
      sessions: ended.head.sessions.without(session),
      kept,
      outbox: [...ended.head.outbox, ...items],
    },
    records: [{ kind: 'session-closed', load: at.load, session }],
    effects: [{ kind: 'end-lease', of: { ...at, session } }],
  });
  return served(closed, at);
}

function endSessionRequest(
  head: HeadState,
  at: LoadAddress,
  end: { request: RequestId | null; reason: FinishReason; detail: string },
): HeadStep {
  const request = end.request === null ? undefined : head.requests.get(end.request);
  if (request?.kind !== 'running') return unchangedHead(head);
  return endRequest(head, at, { request, reason: end.reason, detail: end.detail });
}

export function cancelRequest(
  head: HeadState,
  at: LoadAddress,
  order: { call: CallId; session: SessionId; request: RequestId },
): HeadStep {
  const request = head.requests.get(order.request);
  if (request === undefined || !isOf(request, order.session)) {
    return repliedHead(head, order.call, { kind: 'refused', error: unknownRequest(at, order.request) });
  }
  const ended = endSessionRequest(head, at, { request: request.id, reason: 'cancelled', detail: '' });
  const wasRunning = request.kind === 'running';
  return followed(ended, repliedHead(ended.head, order.call, { kind: 'cancelled', wasRunning }));
}

export function askSettlement(
  head: HeadState,
  at: LoadAddress,
  order: { call: CallId; session: SessionId; request: RequestId },
): HeadStep {
  const request = head.requests.get(order.request);
  const reply = (of: CallReply): HeadStep => repliedHead(head, order.call, of);
  if (request === undefined || !isOf(request, order.session)) {
    return reply({ kind: 'refused', error: unknownRequest(at, order.request) });
  }
  switch (request.kind) {
    case 'running':
      return reply({ kind: 'settlement', settlement: { kind: 'running' } });
    case 'ending':
      return reply({ kind: 'settlement', settlement: { kind: 'ending' } });
    case 'settled': {
      const { reason, receipts, emitted } = request;
      return reply({ kind: 'settlement', settlement: { kind: 'settled', reason, receipts, emitted } });
    }
  }
}

/** The ring ends: every request ends and is settled with what is known, every session is closed. */
export function loseHead(
  head: HeadState,
  at: LoadAddress,
  { error, detail }: { readonly error: P4Error; readonly detail: string },
): HeadStep {
  let step = refuseQueue(head, error);
  for (const session of head.sessions.values()) {
    step = followed(step, endSessionRequest(step.head, at, { request: session.request, reason: 'ring-lost', detail }));
    step = followed(step, closeSession(step.head, at, session.id));
  }
  for (const request of step.head.requests.values()) {
    if (request.kind === 'ending') step = followed(step, settle(step.head, at, { request, receipts: [] }));
  }
  return { ...step, head: { ...step.head, outbox: [], framesInFlight: 0 } };
}

/** Whether a caller means this request: session 0 stands for whichever it belongs to. */
const isOf = (request: RequestState, session: SessionId): boolean => session === 0 || request.session === session;

function unknownRequest(at: LoadAddress, request: RequestId): P4Error {
  return new P4Error('REQUEST_UNKNOWN', { ring: at.ring, request });
}
