/**
 * Requests that an agent has let go of, out of its journal: what came out of one, and its settlement.
 *
 * Text is not kept: it is assembled again from the tokens, with the vocabulary of the ring's head.
 */
import { P4Error } from '../../protocol/errors.ts';
import type { RequestId, RingName, SessionId } from '../../protocol/ids.ts';
import type { SettlementState } from '../calls.ts';
import { addPiece, emptyAssembly, remainingText } from '../head/text-assembly.ts';
import type { Vocabulary } from '../head/vocabulary.ts';
import type { JournalRecord, RequestAdmitted, RequestEnded, RequestSettled, TokenEmitted } from '../records.ts';
import type { TranscriptEvent } from '../transcripts.ts';

/** One request's records. */
export interface KeptRequest {
  readonly session: SessionId;
  readonly admitted: RequestAdmitted | null;
  readonly tokens: readonly TokenEmitted[];
  readonly ended: RequestEnded | null;
  readonly settled: RequestSettled | null;
}

interface Asked {
  readonly ring: RingName;
  /** 0: whichever the request belongs to. */
  readonly session: SessionId;
  readonly request: RequestId;
}

/** @throws REQUEST_UNKNOWN, and what the journal throws: REQUEST_EXPIRED, JOURNAL_CORRUPT */
export async function keptRequest(records: AsyncIterable<JournalRecord>, asked: Asked): Promise<KeptRequest> {
  let session: SessionId | null = null;
  let admitted: RequestAdmitted | null = null;
  let ended: RequestEnded | null = null;
  let settled: RequestSettled | null = null;
  const tokens: TokenEmitted[] = [];
  for await (const record of records) {
    if ('session' in record) session = record.session;
    if (record.kind === 'request-admitted') admitted = record;
    if (record.kind === 'token-emitted') tokens.push(record);
    if (record.kind === 'request-ended') ended = record;
    if (record.kind === 'request-settled') settled = record;
  }
  const { ring, request } = asked;
  if (session === null || (asked.session !== 0 && asked.session !== session))
    throw new P4Error('REQUEST_UNKNOWN', { ring, request });
  return { session, admitted, tokens, ended, settled };
}

/**
 * What its readers were given, from token index `from` on, inclusive, and its end.
 * @throws REQUEST_EXPIRED when its tokens are not kept any more
 */
export function* keptTranscript(
  { admitted, tokens, ended }: KeptRequest,
  { vocabulary, from, asked }: { readonly vocabulary: Vocabulary; readonly from: number; readonly asked: Asked },
): Generator<TranscriptEvent> {
  const { ring, request } = asked;
  if (admitted === null) throw new P4Error('REQUEST_EXPIRED', { ring, request });
  let assembly = emptyAssembly;
  for (const { index, token } of tokens) {
    const added = addPiece(assembly, vocabulary.piece(token), admitted.stopStrings);
    assembly = added.assembly;
    if (index >= from) yield { kind: 'token', token: { index, token, text: added.released } };
  }
  if (ended === null) return;
  const { reason, detail, promptTokens } = ended;
  const text = reason === 'stop-string' ? '' : remainingText(assembly);
  yield { kind: 'end', end: { reason, text, promptTokens, completionTokens: tokens.length, detail } };
}

export function keptSettlement({ ended, settled }: KeptRequest): SettlementState {
  if (ended === null) return { kind: 'running' };
  if (settled === null) return { kind: 'ending' };
  return { kind: 'settled', reason: ended.reason, receipts: settled.receipts, emitted: settled.emitted };
}
