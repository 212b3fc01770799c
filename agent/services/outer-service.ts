/** The Outer service: sessions, requests and what comes out of them, at the agent of a ring's head. */
import { P4Error } from '../../protocol/errors.ts';
import { checkGrammar } from '../../protocol/grammar-check.ts';
import {
  generation,
  nodeIndex,
  requestId,
  ringName,
  sessionId,
  tokenId,
  type SessionId,
  type TokenId,
} from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type * as messages from '../../protocol/messages.ts';
import { parseSampling } from '../../protocol/sampling-check.ts';
import type { SettlementState } from '../calls.ts';
import type { Input } from '../inputs.ts';
import type { HeadState } from '../head/head-state.ts';
import type { Journal } from '../journal/journal.ts';
import type { Leases } from '../leases.ts';
import { addressedRing, headMissing } from '../outcome.ts';
import type { PendingCalls } from '../pending-calls.ts';
import type { Caller, EventSender, RpcHandlers } from '../rpc/calls.ts';
import type { Stages } from '../stages.ts';
import type { AgentState, LiveRing } from '../state.ts';
import type { Pause, TranscriptEvent, Transcripts } from '../transcripts.ts';
import { keptRequest, keptSettlement, keptTranscript } from './ended-requests.ts';

export interface OuterServiceOptions {
  readonly state: () => AgentState;
  readonly dispatch: (input: Input) => void;
  readonly calls: PendingCalls;
  readonly transcripts: Transcripts;
  readonly leases: Leases;
  readonly stages: Pick<Stages, 'tokenize'>;
  readonly journal: Pick<Journal, 'requestRecords'>;
}

export function outerService(options: OuterServiceOptions): RpcHandlers['Outer'] {
  const { calls, dispatch } = options;
  return {
    OpenSession: (request, caller, stream) => openSession(options, { request, caller }, stream),
    Submit: (request) => submit(options, request),
    Gather: (request, _caller, stream) => gather(options, request, stream),
    Cancel: (request) =>
      calls.ask('cancelled', (call) => {
        dispatch({ kind: 'cancel', call, ...requestOf(request) });
      }),
    CloseSession: async (request) => {
      await calls.ask('session-closed', (call) => {
        dispatch({ kind: 'close-session', call, ...sessionOf(request) });
      });
      return {};
    },
    Settle: (request) => settle(options, request),
  };
}

async function settle(options: OuterServiceOptions, request: messages.RequestCommand): Promise<messages.Settlement> {
  const { state, calls, dispatch } = options;
  const ring = headedRing(state(), request);
  const known = ring.head.requests.get(requestId(request.request));
  if (known === undefined) {
    const kept = await keptRequest(...fromJournal(options, ring, request));
    return settlementMessage(ring, kept.session, keptSettlement(kept));
  }
  const { settlement } = await calls.ask('settlement', (call) => {
    dispatch({ kind: 'settle', call, ...requestOf(request) });
  });
  return settlementMessage(ring, known.session, settlement);
}

/** Where to look for a request that memory has let go of. */
function fromJournal(
  { journal }: OuterServiceOptions,
  { ring, load }: LiveRing,
  { session, request }: messages.RequestCommand,
): Parameters<typeof keptRequest> {
  const asked = { ring, session: sessionId(session), request: requestId(request) };
  return [journal.requestRecords(load, asked.request), asked];
}

/** The stream is the session's lease: when it ends, so does the session after its time to linger, unless another took it up. */
async function openSession(
  { state, dispatch, calls, leases }: OuterServiceOptions,
  { request, caller }: { readonly request: messages.OpenSessionRequest; readonly caller: Caller },
  stream: EventSender<messages.SessionOpened>,
): Promise<void> {
  const owner = ownerOf(request, caller);
  const at = { ring: ringName(request.ring), generation: generation(request.generation) };
  let leave = (): void => undefined;
  const asked = calls.ask('session-opened', (call) => {
    if (request.session !== 0) {
      dispatch({ kind: 'resume-session', call, ...at, session: sessionId(request.session) });
      return;
    }
    dispatch({ kind: 'open-session', call, ...at, owner, waits: request.waits });
    const ring = state().rings.get(at.ring);
    const ahead = ring?.kind === 'live' ? (ring.head?.queue.findIndex((waiting) => waiting.call === call) ?? -1) : -1;
    if (ahead < 0) return;
    void stream.send({ session: 0, contextTokens: 0, ahead });
    leave = () => {
      dispatch({ kind: 'leave-queue', call, ...at });
    };
    stream.signal.addEventListener('abort', leave, { once: true });
  });
  const opened = await asked.catch((error: unknown) => {
    // The journal may have refused the session: whoever waits behind is served then.
    leave();
    throw error;
  });
  stream.signal.removeEventListener('abort', leave);
  const { session, contextTokens } = opened;
  const { load, head } = liveRing(state(), request);
  void stream.send({ session, contextTokens, ahead: 0 });
  // It may have ended while its opening was written down: then nobody ends its lease any more.
  if (head?.sessions.has(session) !== true) return;
  const ended = await leases.held({ load, session }, stream.signal);
  if (ended !== 'let-go') return;
  leases.expect({ load, session }, Math.min(request.lingerMs, limits.lingerMs), () => {
    dispatch({ kind: 'lease-expired', ring: at.ring, load, session });
  });
}

/** Rows are shared among the sessions of one certificate that gave the same key. */
function ownerOf({ cacheKey }: messages.OpenSessionRequest, { role, name }: Caller): string | null {
  const bytes = Buffer.byteLength(cacheKey);
  if (bytes > limits.cacheKeyBytes) {
    const expected = `at most ${limits.cacheKeyBytes}`;
    throw new P4Error('INVALID_ARGUMENT', { what: 'cache key', found: `${bytes} bytes`, expected });
  }
  return cacheKey === '' ? null : JSON.stringify([role, name, cacheKey]);
}

async function submit(options: OuterServiceOptions, request: messages.SubmitRequest): Promise<messages.SubmitReply> {
  const { state, dispatch, calls } = options;
  const sampling = parseSampling(parseJson(request.sampling));
  if (sampling.grammar !== null) checkGrammar(sampling.grammar);
  if (request.maxTokens === 0)
    throw new P4Error('INVALID_ARGUMENT', { what: 'max tokens', found: 0, expected: 'at least 1' });
  checkStops(request.stop);
  const ring = liveRing(state(), request);
  const prompt = await promptTokens(options, ring, request);
  const { request: id, promptTokens: count } = await calls.ask('submitted', (call) => {
    const { stop: stopStrings, maxTokens, ignoreEnd } = request;
    dispatch({ kind: 'submit', call, ...sessionOf(request), prompt, sampling, stopStrings, maxTokens, ignoreEnd });
  });
  return { request: id, promptTokens: count };
}

async function promptTokens(
  { stages }: OuterServiceOptions,
  ring: LiveRing,
  request: messages.SubmitRequest,
): Promise<readonly TokenId[]> {
  if (request.prompt === 'tokens') return request.tokens.ids.map(tokenId);
  if (request.prompt !== 'text') {
    throw new P4Error('INVALID_ARGUMENT', { what: 'prompt', found: 'nothing', expected: 'text or token ids' });
  }
  const bytes = Buffer.byteLength(request.text);
  if (bytes > limits.promptBytes) {
    throw new P4Error('INVALID_ARGUMENT', {
      what: 'prompt',
      found: `${bytes} bytes`,
      expected: `at most ${limits.promptBytes}`,
    });
  }
  // The text of a session begins once: later prompts go on where it is.
  const addSpecial = (ring.head?.sessions.get(sessionId(request.session))?.history.length ?? 0) === 0;
  const { text, parseSpecial } = request;
  return stages.tokenize({ load: ring.load, node: nodeIndex(0) }, { text, addSpecial, parseSpecial });
}

async function gather(
  options: OuterServiceOptions,
  request: messages.GatherRequest,
  stream: EventSender<messages.GatherEvent>,
): Promise<void> {
  const { state, transcripts } = options;
  const ring = headedRing(state(), request);
  const { ring: name, load, head } = ring;
  const { from } = request;
  const asked = { ring: name, load, session: sessionId(request.session), request: requestId(request.request) };
  const found = transcripts.find(asked);
  if (found !== null) {
    for await (const event of transcripts.read(found, from, stream.signal)) await stream.send(gatherMessage(event));
    return;
  }
  const kept = await keptRequest(...fromJournal(options, ring, request));
  for (const event of keptTranscript(kept, { vocabulary: head.vocabulary, from, asked })) {
    if (stream.signal.aborted) return;
    await stream.send(gatherMessage(event));
  }
}

function gatherMessage(event: TranscriptEvent): messages.GatherEvent {
  switch (event.kind) {
    case 'token':
      return { event: 'token', token: event.token };
    case 'end':
      return { event: 'end', end: event.end };
    case 'paused':
      return { event: 'paused', paused: pauseMessage(event.pause) };
    case 'resumed':
      return { event: 'resumed', resumed: {} };
  }
}

function pauseMessage({ error, untilMs }: Pause): messages.GatheredPause {
  const { code, rule, facts } = error;
  const { host = '', node = '' } = facts;
  const remainingMs = untilMs === null ? 0 : Math.max(1, Math.round(untilMs - performance.now()));
  return { code, text: rule.says, host: String(host), node: String(node), remainingMs };
}

function settlementMessage(ring: LiveRing, session: SessionId, settlement: SettlementState): messages.Settlement {
  if (settlement.kind !== 'settled') return { state: settlement.kind, reason: '', session, stages: [], emitted: 0 };
  const { reason, receipts, emitted } = settlement;
  const stages = receipts.map((receipt): messages.SettledStage => {
    const { node, prefilled, decoded, reused, recomputed, padding, computeUs } = receipt;
    const stage = ring.plan.stages[node];
    const { first = 0, last = 0 } = stage?.layers ?? {};
    return {
      ...{ node, host: stage?.host ?? '', firstLayer: first, lastLayer: last },
      ...{ prefilled, decoded, reused, recomputed, padding, computeMs: computeUs / 1000 },
    };
  });
  return { state: 'settled', reason, session, stages, emitted };
}

/** @throws the refusal of a ring that is not there, or is of another generation (G3) */
function liveRing(state: AgentState, request: { readonly ring: string; readonly generation: string }): LiveRing {
  const addressed = addressedRing(state, { ring: ringName(request.ring), generation: generation(request.generation) });
  if (addressed.kind === 'refused') throw addressed.error;
  return addressed.ring;
}

/** The same, with its head. @throws RING_NOT_READY where that is still to come up, NOT_THE_HEAD */
function headedRing(
  state: AgentState,
  request: { readonly ring: string; readonly generation: string },
): LiveRing & { readonly head: HeadState } {
  const ring = liveRing(state, request);
  if (ring.head !== null) return { ...ring, head: ring.head };
  throw headMissing(ring, state.host);
}

function sessionOf(request: messages.SessionCommand) {
  const { ring, generation: number, session } = request;
  return { ring: ringName(ring), generation: generation(number), session: sessionId(session) };
}

function requestOf(request: messages.RequestCommand) {
  return { ...sessionOf(request), request: requestId(request.request) };
}

function checkStops(stops: readonly string[]): void {
  const wrong = stops.find((stop) => stop === '' || Buffer.byteLength(stop) > limits.stopStringBytes);
  if (wrong === undefined && stops.length <= limits.stopStrings) return;
  throw new P4Error('INVALID_ARGUMENT', {
    what: 'stop strings',
    found: wrong === undefined ? `${stops.length} of them` : `one of ${Buffer.byteLength(wrong)} bytes`,
    expected: `at most ${limits.stopStrings}, each of 1 to ${limits.stopStringBytes} bytes`,
  });
}

function parseJson(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch (cause) {
    throw new P4Error('INVALID_ARGUMENT', { what: 'sampling', found: 'no JSON', expected: 'an object as JSON' }, cause);
  }
}
