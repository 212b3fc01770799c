/** The life of a request at the head: submitted, fed, drawn from, ended, settled (S1 to S3). */
import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { FinishReason } from '../../protocol/finish.ts';
import {
  nothingRan,
  type EndItem,
  type FailedItem,
  type FailedWhy,
  type Receipt,
  type TokenItem,
} from '../../protocol/hop-items.ts';
import { requestId, type SessionId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { CallId } from '../calls.ts';
import type { RequestAddress, Submission } from '../inputs.ts';
import type { KeptReceipt } from '../records.ts';
import {
  appendTokens,
  changedHead,
  changedRequest,
  changedSession,
  historyOf,
  runsOf,
  shortenedHistory,
  shortenedMarks,
  type EndingRequest,
  type HeadState,
  type RunningRequest,
  type SessionState,
} from './head-state.ts';
import { followed, repliedHead, unchangedHead, type HeadStep, type LoadAddress } from './head-step.ts';
import { endedRows } from './memory.ts';
import { adoption } from './prefix-reuse.ts';
import { addPiece, emptyAssembly, remainingText } from './text-assembly.ts';

export interface SubmitOrder extends Submission {
  readonly call: CallId;
  readonly session: SessionId;
}

/** Admits a request into an idle session. */
export function submit(head: HeadState, at: LoadAddress, order: SubmitOrder): HeadStep {
  const session = head.sessions.get(order.session);
  if (session === undefined) return refuse(head, order.call, unknownSession(at, order.session));
  const fault = stalledRing(head, at) ?? submitFault(head, session, order);
  if (fault !== null) return refuse(head, order.call, fault);
  const request = head.nextRequest;
  const adopted = adoption(head, session, order.prompt);
  // Lists of its own: a step that the journal does not admit is never taken, and must not have grown those of before (J1).
  const history = historyOf([...session.history.tokens.slice(0, session.history.length), ...order.prompt]);
  const rows = adopted?.rows ?? shortenedMarks(session.rows, session.rows.length);
  const running: RunningRequest = {
    kind: 'running',
    id: request,
    session: session.id,
    promptTokens: history.length,
    emitted: 0,
    sampling: order.sampling,
    stopStrings: order.stopStrings,
    maxTokens: order.maxTokens,
    ignoreEnd: order.ignoreEnd,
    assembly: emptyAssembly,
    began: { tokens: session.history.length, rows: rows.length },
    sampledBy: null,
    fedAgain: false,
  };
  const { slot } = session;
  const reused = history.tokens.slice(0, rows.length);
  const sentRows = adopted === null ? session.sentRows : rows.length;
  const { sampling, stopStrings, maxTokens, ignoreEnd, prompt } = order;
  return {
    head: {
      ...head,
      nextRequest: requestId(request + 1),
      sessions: head.sessions.with(session.id, { ...session, history, rows, sentRows, request }),
      requests: head.requests.with(request, running),
      kept: adopted?.kept ?? head.kept,
      outbox: [
        ...head.outbox,
        ...(adopted?.items ?? []),
        {
          kind: 'begin',
          ...{ session: session.id, request, slot, reusedRows: reused.length, sampling },
          ...{ ran: nothingRan, history: reused, drawn: [] },
        },
      ],
    },
    records: [
      {
        kind: 'request-admitted',
        ...{ load: at.load, session: session.id, request },
        ...{ prompt, sampling, stopStrings, maxTokens, ignoreEnd },
        ...(adopted === null ? {} : { adopted: runsOf(rows) }),
      },
    ],
    effects: [
      { kind: 'publish-begin', of: { ...at, session: session.id, request } },
      { kind: 'reply', call: order.call, reply: { kind: 'submitted', request, promptTokens: history.length } },
    ],
  };
}

const refuse = (head: HeadState, call: CallId, error: P4Error): HeadStep =>
  repliedHead(head, call, { kind: 'refused', error });

function submitFault(head: HeadState, session: SessionState, order: SubmitOrder): P4Error | null {
  if (session.request !== null) return new P4Error('SESSION_BUSY', { session: session.id, request: session.request });
  const held = session.history.length;
  if (held + order.prompt.length === session.rows.length) return new P4Error('PROMPT_EMPTY', { session: session.id });
  if (held + order.prompt.length > head.contextTokens) {
    return new P4Error('PROMPT_TOO_LONG', {
      'prompt tokens': order.prompt.length,
      'tokens already in the session': held,
      'context tokens': head.contextTokens,
    });
  }
  const { size } = head.vocabulary;
  const named = [...order.prompt, ...order.sampling.logitBias.map(([token]) => token)];
  const outside = named.find((token) => token >= size);
  return outside === undefined ? null : new P4Error('TOKEN_OUT_OF_RANGE', { token: outside, 'vocabulary size': size });
}

/** Clients that come and go while the head stage stands still must not pile up: what waits for it fits one frame. */
export function stalledRing(head: HeadState, at: LoadAddress): P4Error | null {
  const waiting = head.outbox.length;
  return waiting < limits.waitingItems ? null : new P4Error('RING_STALLED', { ring: at.ring, waiting });
}

/** The tail drew a token. One that is not awaited (a double, or of a request that ended) changes nothing (E1). */
export function drawn(head: HeadState, at: LoadAddress, item: TokenItem): HeadStep {
  const request = head.requests.get(item.request);
  const session = head.sessions.get(item.session);
  if (
    request?.kind !== 'running' ||
    session?.request !== request.id ||
    request.sampledBy === null ||
    item.step !== request.emitted
  ) {
    return unchangedHead(head);
  }
  const index = request.emitted;
  const ends = head.vocabulary.endsGeneration(item.token) && !request.ignoreEnd;
  const step = addPiece(request.assembly, head.vocabulary.piece(item.token), request.stopStrings);
  const history = appendTokens(session.history, [item.token]);
  const now = changedRequest(request, { emitted: index + 1, assembly: step.assembly, sampledBy: null });
  const grown = changedHead(head, {
    emitted: head.emitted + 1,
    sessions: head.sessions.with(session.id, changedSession(session, { history })),
    requests: head.requests.with(request.id, now),
  });
  const { ring, load } = at;
  const of: RequestAddress = { ring, load, session: session.id, request: request.id };
  const alone = session.rows.alone[session.rows.length - 1] === true;
  const told: HeadStep = {
    head: grown,
    records: [
      { kind: 'token-emitted', load, session: session.id, request: request.id, index, token: item.token, alone },
    ],
    effects: [{ kind: 'publish-token', of, index, token: item.token, text: step.released }],
  };
  const reason = finishReason(now, { ends, stopped: step.stopped, full: history.length > head.contextTokens });
  return reason === null ? told : followed(told, endRequest(grown, at, { request: now, reason, detail: '' }));
}

function finishReason(
  request: RunningRequest,
  seen: { ends: boolean; stopped: boolean; full: boolean },
): FinishReason | null {
  if (seen.stopped) return 'stop-string';
  if (seen.ends) return 'end-of-generation';
  if (request.emitted >= request.maxTokens) return 'length';
  return seen.full ? 'context-full' : null;
}

const failedReasons: Readonly<Record<FailedWhy, FinishReason>> = {
  'kv-cache-full': 'context-full',
  'grammar-dead-end': 'grammar-dead-end',
  'grammar-invalid': 'refused',
  'sampling-invalid': 'refused',
};

/**
 * A stage could not run a request's rows. It and the stages after it dropped them, those before it did not: the session
 * is cut back, on every stage alike, to what it held when the request began.
 */
export function failed(head: HeadState, at: LoadAddress, item: FailedItem): HeadStep {
  const request = head.requests.get(item.request);
  if (request?.kind === 'ending' && item.why !== 'grammar-dead-end') return unchangedHead(rowsMissing(head, request));
  if (request?.kind !== 'running') return unchangedHead(head);
  const reason = failedReasons[item.why];
  // At a dead end every row has run, on every stage: only the draw came to nothing.
  const cut = item.why === 'grammar-dead-end' ? head : cutBack(head, request);
  return endRequest(cut, at, { request, reason, detail: `stage ${item.node}: ${item.why}` });
}

function cutBack(head: HeadState, { session: id, began, fedAgain }: RunningRequest): HeadState {
  const session = head.sessions.get(id);
  if (session === undefined) return head;
  const history = shortenedHistory(session.history, began.tokens);
  // What it adopted is of its own prompt.
  const heldRows = Math.min(began.rows, began.tokens);
  const rows = shortenedMarks(session.rows, heldRows);
  // Where rows ran again, or still had to, stages may have dropped some of those, too.
  const length = fedAgain || session.sentRows < heldRows ? 0 : heldRows;
  return {
    ...head,
    sessions: head.sessions.with(id, { ...session, history, rows, sentRows: length }),
    outbox: [...head.outbox, { kind: 'truncate', session: id, slot: session.slot, length }],
  };
}

/** It was ended while its failure was on the way: what its session holds is not the same on every stage, and runs again. */
function rowsMissing(head: HeadState, { session: id }: EndingRequest): HeadState {
  const session = head.sessions.get(id);
  if (session === undefined) return head;
  return {
    ...head,
    sessions: head.sessions.with(id, { ...session, sentRows: 0 }),
    outbox: [...head.outbox, { kind: 'truncate', session: id, slot: session.slot, length: 0 }],
  };
}

/** Ends a running request: readers are told, and its `end` goes round for the receipts. */
export function endRequest(
  head: HeadState,
  at: LoadAddress,
  { request, reason, detail }: { request: RunningRequest; reason: FinishReason; detail: string },
): HeadStep {
  const { id, session, promptTokens, emitted, began } = request;
  const holder = present(head.sessions.get(session), 'a running request has its session');
  const sessions = head.sessions.with(session, { ...holder, request: null, ending: id });
  const alone = holder.rows.alone[holder.rows.length - 1] === true;
  const held = { heldTokens: holder.history.length, heldRows: holder.rows.length, alone };
  const ran = endedRows({ promptTokens, reused: began.rows, rows: held.heldRows });
  const ending: EndingRequest = { kind: 'ending', id, session, promptTokens, emitted, reason, ran };
  const text = reason === 'stop-string' ? '' : remainingText(request.assembly);
  return {
    head: {
      ...head,
      sessions,
      requests: head.requests.with(id, ending),
      outbox: [...head.outbox, { kind: 'end', session, request: id, receipts: [], ran: null }],
    },
    records: [
      {
        kind: 'request-ended',
        ...{ load: at.load, session, request: id, reason, detail, promptTokens, reused: began.rows },
        ...held,
      },
    ],
    effects: [
      {
        kind: 'publish-end',
        of: { ...at, session, request: id },
        end: { reason, text, promptTokens, completionTokens: emitted, detail },
      },
    ],
  };
}

/** A request's receipts are home: settled, exactly once (S3). */
export function settled(head: HeadState, at: LoadAddress, item: EndItem): HeadStep {
  const request = head.requests.get(item.request);
  if (request?.kind !== 'ending') return unchangedHead(head);
  return settle(head, at, { request, receipts: item.receipts });
}

export function settle(
  head: HeadState,
  at: LoadAddress,
  { request, receipts: homeward }: { request: EndingRequest; receipts: readonly Receipt[] },
): HeadStep {
  const { id, session, promptTokens, emitted, reason } = request;
  const receipts = homeward.map(kept);
  const requests = head.requests.with(id, {
    kind: 'settled',
    ...{ id, session, promptTokens, emitted, reason, receipts },
  });
  const holder = head.sessions.get(session);
  const sessions = holder?.ending === id ? head.sessions.with(session, { ...holder, ending: null }) : head.sessions;
  return {
    head: { ...head, sessions, requests: forgetOldest(requests), finished: head.finished + 1 },
    records: [{ kind: 'request-settled', load: at.load, session, request: id, receipts, emitted }],
    effects: [],
  };
}

function forgetOldest(requests: HeadState['requests']): HeadState['requests'] {
  if (requests.size <= limits.keptRequests) return requests;
  for (const [id, request] of requests) if (request.kind === 'settled') return requests.without(id);
  return requests;
}

function kept(receipt: Receipt): KeptReceipt {
  const { node, prefilled, decoded, reused, recomputed, padding, computeUs } = receipt;
  return { node, prefilled, decoded, reused, recomputed, padding, computeUs };
}

function unknownSession(at: LoadAddress, session: SessionId): P4Error {
  return new P4Error('SESSION_UNKNOWN', { ring: at.ring, session });
}
