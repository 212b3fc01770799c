/**
 * A journal read at the end, load by load, against undisturbed twins (X3, R3), and its settlements against what must have
 * run (S2, S3). What clients have read is compared with it (J8).
 */
import type { JournalRecord, RequestAdmitted, RequestEnded, RequestSettled } from '../../agent/records.ts';
import type { LoadId, RequestId, SessionId, TokenId } from '../../protocol/ids.ts';
import { addPiece, emptyAssembly } from '../../agent/head/text-assembly.ts';
import type { HostModel } from './host-model.ts';
import { toyVocabulary } from './stages-model.ts';
import { brokenGrammar, endToken, ToyTwin } from './toy-model.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

interface Session {
  history: TokenId[];
  /** Rows whose KV a stage that was never disturbed would hold. */
  rows: number;
}

interface Request {
  readonly admitted: RequestAdmitted;
  /** The session's tokens before it, and its rows. */
  readonly before: Session;
  readonly tokens: TokenId[];
  ended: RequestEnded | null;
  settled: RequestSettled | null;
}

export function checkJournal(world: World, { journal, host }: HostModel): void {
  for (const [load, { records, isEnded }] of journal.loads) {
    const { plan } = world.loadNamed(load);
    const isHead = plan.stages[0]?.host === host;
    const requests = requestsOf(records);
    for (const request of requests.values()) {
      const where = `${plan.ring} request ${request.admitted.request}`;
      checkText(request, { stages: plan.stages.length, contextTokens: plan.contextTokens, where });
      checkEnd(request, where);
      checkSettlement(request, { stages: plan.stages.length, isEnded, where });
    }
    if (isHead) checkReadings(world, load, requests);
  }
}

/** The requests of a load, as its records tell them. */
function requestsOf(records: readonly JournalRecord[]): ReadonlyMap<RequestId, Request> {
  const sessions = new Map<SessionId, Session>();
  const requests = new Map<RequestId, Request>();
  for (const record of records) {
    if (record.kind === 'session-opened') sessions.set(record.session, { history: [], rows: 0 });
    if (record.kind === 'request-admitted') {
      const session = sessions.get(record.session) ?? { history: [], rows: 0 };
      const before = { history: [...session.history], rows: session.rows + adoptedRows(record) };
      session.history.push(...record.prompt);
      requests.set(record.request, { admitted: record, before, tokens: [], ended: null, settled: null });
    }
    if (record.kind === 'token-emitted') {
      sessions.get(record.session)?.history.push(record.token);
      requests.get(record.request)?.tokens.push(record.token);
    }
    if (record.kind === 'request-ended') {
      const session = sessions.get(record.session);
      const request = requests.get(record.request);
      if (session !== undefined) {
        session.history.splice(record.heldTokens);
        session.rows = record.heldRows;
      }
      if (request !== undefined) {
        if (request.ended !== null) throw new Violation('S3', `request ${record.request} ends twice`);
        request.ended = record;
      }
    }
    if (record.kind === 'request-settled') {
      const request = requests.get(record.request);
      if (request !== undefined) {
        if (request.settled !== null) throw new Violation('S3', `request ${record.request} is settled twice`);
        request.settled = record;
      }
    }
  }
  return requests;
}

const adoptedRows = ({ adopted = [] }: RequestAdmitted): number => adopted.reduce((sum, length) => sum + length, 0);

/** No stage can draw for it. */
const isBroken = ({ sampling }: RequestAdmitted): boolean => sampling.grammar === brokenGrammar;

/** X3, R3: token for token what is drawn where nothing is ever lost. */
function checkText(
  { admitted, before, tokens, ended }: Request,
  { stages, contextTokens, where }: { readonly stages: number; readonly contextTokens: number; readonly where: string },
): void {
  if (isBroken(admitted)) {
    if (tokens.length > 0) throw new Violation('S3', `${where} drew without a sampler`);
    return;
  }
  const prompt = [...before.history, ...admitted.prompt];
  const twin = new ToyTwin(stages, prompt, admitted.sampling);
  let assembly = emptyAssembly;
  let isOver = false;
  tokens.forEach((token, index) => {
    if (isOver) throw new Violation('X3', `${where} goes on after its end, at token ${index}`);
    const right = twin.draw();
    if (token !== right)
      throw new Violation('R3', `token ${index} of ${where} is ${token}, undisturbed ${String(right)}`);
    const added = addPiece(assembly, toyVocabulary.piece(token), admitted.stopStrings);
    assembly = added.assembly;
    const isEnd = token === endToken && !admitted.ignoreEnd;
    const isFull = prompt.length + index + 1 > contextTokens;
    isOver = added.stopped || isEnd || index + 1 >= admitted.maxTokens || isFull;
  });
  const reason = ended?.reason;
  const isByItself = reason !== undefined && !['cancelled', 'ring-lost', 'grammar-dead-end'].includes(reason);
  if (isByItself !== isOver)
    throw new Violation('S3', `${where} ended: ${reason ?? 'no'}, where its tokens say ${isOver}`);
  if (reason === 'grammar-dead-end' && twin.draw() !== null) throw new Violation('R3', `${where} is no dead end`);
}

/** What the session holds afterwards: the last token was drawn and not fed. */
function checkEnd({ admitted, before, tokens, ended }: Request, where: string): void {
  if (ended === null) return;
  const promptTokens = before.history.length + admitted.prompt.length;
  if (ended.reason === 'refused') {
    // Cut back to what the session held; what it had adopted was for this prompt.
    const held = before.history.length;
    if (ended.heldTokens !== held || ended.heldRows !== Math.min(before.rows, held))
      throw new Violation('S2', `${where} was refused and left ${JSON.stringify(ended)}`);
    return;
  }
  const isRight =
    ended.promptTokens === promptTokens &&
    ended.reused === before.rows &&
    ended.heldTokens === promptTokens + tokens.length &&
    ended.heldRows <= ended.heldTokens &&
    ended.heldRows >= (tokens.length === 0 ? before.rows : promptTokens + tokens.length - 1);
  if (!isRight) throw new Violation('S2', `${where}: its end does not fit its tokens: ${JSON.stringify(ended)}`);
}

/** S2, S3: every request is settled once, and every stage ran what an undisturbed one would have. */
function checkSettlement(
  { admitted, ended, settled }: Request,
  { stages, isEnded, where }: { readonly stages: number; readonly isEnded: boolean; readonly where: string },
): void {
  if (ended === null || settled === null)
    throw new Violation('S3', `${where} was never ${ended === null ? 'ended' : 'settled'}`);
  const { receipts } = settled;
  if (receipts.length === 0 && isEnded) return;
  if (receipts.length !== stages || receipts.some(({ node }, index) => node !== index)) {
    throw new Violation(
      'S3',
      `${where} has receipts of ${receipts.map(({ node }) => node).join(', ')}, of ${stages} stages`,
    );
  }
  // The tail drops its rows, the others run them.
  if (isBroken(admitted)) return;
  const rows = ended.heldRows;
  const prefilled = Math.max(0, Math.min(rows, ended.promptTokens) - ended.reused);
  const decoded = Math.max(0, rows - ended.promptTokens);
  for (const receipt of receipts) {
    if (receipt.prefilled !== prefilled || receipt.decoded !== decoded || receipt.reused !== ended.reused) {
      const right = JSON.stringify({ prefilled, decoded, reused: ended.reused });
      throw new Violation(
        'S2',
        `${where}: stage ${receipt.node} says ${JSON.stringify(receipt)}, undisturbed ${right}`,
      );
    }
  }
}

/** J8: what was read is what is kept. */
function checkReadings(world: World, load: LoadId, requests: ReadonlyMap<RequestId, Request>): void {
  for (const reading of world.clients.flatMap(({ readings }) => readings)) {
    if (reading.load !== load) continue;
    const kept = requests.get(reading.request);
    const isKept = reading.tokens.every((token, index) => kept?.tokens[index] === token);
    if (kept === undefined || !isKept)
      throw new Violation('J8', `request ${reading.request} was read otherwise than it is kept`);
    if (reading.end === null) continue;
    if (reading.end !== kept.ended?.reason || reading.tokens.length !== kept.tokens.length) {
      throw new Violation('J8', `request ${reading.request} was read to an end that it did not have`);
    }
  }
}
