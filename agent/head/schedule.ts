/**
 * Which rows go round next.
 *
 * Sessions that decode go round in groups, each in a frame of its own: as many as the ring has stages, so that every stage
 * has one to compute, or more where that is quicker (`pace.ts`). A group is made anew from whoever is ready when there is
 * room for one, so sessions join and leave at every token.
 *
 * Prompts go round in chunks of one shape class. While sessions decode, a chunk goes when each group has gone once since the
 * last one, and has few enough rows not to hold them up for long; it rides with a group where that costs less than a step of
 * its own. Where none of them waits, it goes as soon as the head stage is free, and not before: whoever comes home meanwhile
 * does not wait behind two.
 *
 * The head stage has at most `limits.headFrames` frames: one that it computes and one that waits, so it never idles and a
 * cancellation never queues behind more than that.
 *
 * R3: rows that were lost run again like a prompt's, in the shape in which they first ran: one that was decoded alone has a
 * frame of its own.
 */
import type { HopItem, RowsItem } from '../../protocol/hop-items.ts';
import type { SessionId, TokenId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import {
  appendMarks,
  changedHead,
  changedRequest,
  changedSession,
  type HeadState,
  type RunningRequest,
  type SessionState,
  type TurnKind,
  type Turns,
} from './head-state.ts';
import { chunkRows, chunkRowsBeside, grouping } from './pace.ts';
import { roomMade } from './prefix-reuse.ts';

/** `tokens`: one for each row of `items`, in order. */
export interface FrameDraft {
  readonly items: readonly HopItem[];
  readonly tokens: readonly TokenId[];
}

export interface Scheduled {
  readonly head: HeadState;
  readonly frames: readonly FrameDraft[];
}

/** A session that may feed, and how many of its rows wait. */
interface Waiting {
  readonly session: SessionState;
  readonly request: RunningRequest;
  readonly rows: number;
}

/** What the sessions want of the next frame, those whose turn it is first. */
interface Demand {
  readonly decoding: readonly Waiting[];
  readonly prompts: readonly Waiting[];
  readonly alone: readonly Waiting[];
  /** Sessions that decode: those above, and those whose rows are on their way. */
  readonly decoders: number;
  /** Frames on their way whose tokens are awaited. */
  readonly groups: number;
}

/** Rows that one session feeds with this frame. */
interface Feed {
  readonly kind: TurnKind;
  readonly session: SessionState;
  readonly request: RunningRequest;
  readonly rowCount: number;
  /** Whether they ran before a loss. */
  readonly again: boolean;
  /** Whether every stage decodes it by itself. */
  readonly alone: boolean;
}

export function schedule(head: HeadState): Scheduled {
  const frames: FrameDraft[] = [];
  let current = head;
  while (current.framesInFlight < limits.headFrames) {
    const waiting = waitingItems(current.outbox);
    const feeds = waiting.length < current.outbox.length ? [] : loneFeed(current, chooseFeeds(current));
    if (feeds.length === 0 && waiting.length === 0) break;
    const room = roomMade(
      current,
      feeds.reduce((sum, { rowCount }) => sum + rowCount, 0),
    );
    frames.push({ items: [...waiting, ...room.items, ...feeds.map(rowsItem)], tokens: feeds.flatMap(rowTokens) });
    current = changedHead(fed(current, feeds, waiting.length), { kept: room.kept });
  }
  return { head: current, frames };
}

/** The items that one frame has room for, in order: after a loss every session brings the tokens its sampler has to know. */
function waitingItems(outbox: HeadState['outbox']): readonly HopItem[] {
  let tokens = 0;
  const count = outbox.findIndex((item, index) => {
    if (item.kind === 'begin') tokens += item.history.length + item.drawn.length;
    return index > 0 && (tokens > limits.frameTokens || index >= limits.frameWaitingItems);
  });
  return count < 0 ? outbox : outbox.slice(0, count);
}

function chooseFeeds(head: HeadState): readonly Feed[] {
  const { pace, stages, turns, framesInFlight } = head;
  const demand = demandOf(head);
  const { decoding, prompts, decoders } = demand;
  const [lone] = demand.alone;
  // A row that runs alone takes turns with all the others.
  if (lone !== undefined && (decoding.length + prompts.length === 0 || turns.kind !== 'alone')) {
    return [{ kind: 'alone', session: lone.session, request: lone.request, rowCount: 1, again: true, alone: true }];
  }
  if (decoders === 0) return promptFeeds(prompts, limits.cpuDecodeRows);
  const groups = grouping(pace, { decoders, stages, mayBeAlone: head.decode === 'fast' });
  const room = Math.max(0, groups.count - demand.groups);
  const group = decoding.slice(0, room === 0 ? 0 : Math.min(groups.size, Math.ceil(decoding.length / room)));
  const decodeFeeds = group.map((waiting) => decodeFeed(waiting, groups.alone));
  if (prompts.length === 0 || (group.length > 0 && turns.kind !== 'decode')) return decodeFeeds;
  const rowsBeside = group.length === 0 ? 0 : chunkRowsBeside(pace, { ...groups, size: group.length });
  if (rowsBeside > 0) return [...decodeFeeds, ...promptFeeds(prompts, rowsBeside)];
  // A chunk by itself holds up every group: each has gone once since the last one.
  if (turns.decodes < groups.count) return decodeFeeds;
  if (group.length === 0 && framesInFlight > 0) return [];
  return promptFeeds(prompts, chunkRows(pace, groups, stages));
}

/** A row that is recomputed has the shape in which it first ran (R3). */
function decodeFeed({ session, request }: Waiting, alone: boolean): Feed {
  const again = rowsAgain(session) > 0;
  return { kind: 'decode', session, request, rowCount: 1, again, alone: alone && !again };
}

/** A row that has its frame to itself has no others beside it at later stages either. */
function loneFeed({ decode }: HeadState, feeds: readonly Feed[]): readonly Feed[] {
  const [first] = feeds;
  const isLone = decode === 'fast' && feeds.length === 1 && first?.rowCount === 1 && !first.again;
  return isLone ? [{ ...first, alone: true }] : feeds;
}

function promptFeeds(prompts: readonly Waiting[], mostRows: number): readonly Feed[] {
  const feeds: Feed[] = [];
  let room = mostRows;
  for (const { session, request, rows } of prompts) {
    if (room === 0) break;
    const lost = rowsAgain(session);
    const rowCount = Math.min(lost > 0 ? lost : rows, room);
    feeds.push({ kind: 'prompt', session, request, rowCount, again: lost > 0, alone: false });
    room -= rowCount;
  }
  return feeds;
}

/** Lost rows that run again next, together: those up to one that has to be alone. */
function rowsAgain({ rows, sentRows }: SessionState): number {
  let end = sentRows;
  while (end < rows.length && rows.alone[end] !== true && end - sentRows < limits.cpuDecodeRows) end++;
  return end - sentRows;
}

const mustRunAlone = ({ rows, sentRows }: SessionState): boolean =>
  sentRows < rows.length && rows.alone[sentRows] === true;

function demandOf(head: HeadState): Demand {
  const waiting: Record<TurnKind, Waiting[]> = { decode: [], prompt: [], alone: [] };
  const groups = new Set<number>();
  let decoders = 0;
  for (const session of head.sessions.values()) {
    const request = session.request === null ? undefined : head.requests.get(session.request);
    if (request?.kind !== 'running' || session.ending !== null) continue;
    const rows = session.history.length - session.sentRows;
    const isOnItsWay = request.sampledBy !== null;
    const kind = mustRunAlone(session) ? 'alone' : rows > 1 ? 'prompt' : 'decode';
    if (isOnItsWay) groups.add(request.sampledBy);
    else waiting[kind].push({ session, request, rows });
    if (isOnItsWay || kind === 'decode') decoders += 1;
  }
  return {
    decoding: inTurn(waiting.decode, head.turns.last.decode),
    prompts: inTurn(waiting.prompt, head.turns.last.prompt),
    alone: inTurn(waiting.alone, head.turns.last.alone),
    decoders,
    groups: groups.size,
  };
}

/** From the one after the last that was fed; they come in the order of their ids, as `sessions` has them. */
function inTurn(waiting: readonly Waiting[], last: SessionId | null): readonly Waiting[] {
  const next = last === null ? 0 : waiting.findIndex(({ session }) => session.id > last);
  return next <= 0 ? waiting : [...waiting.slice(next), ...waiting.slice(0, next)];
}

function rowsItem({ session, request, rowCount, again, alone }: Feed): RowsItem {
  return {
    kind: 'rows',
    session: session.id,
    request: request.id,
    slot: session.slot,
    step: request.emitted,
    firstPosition: session.sentRows,
    rowCount,
    phase: again ? 'recompute' : request.emitted === 0 ? 'prefill' : 'decode',
    samples: !again && session.sentRows + rowCount === session.history.length,
    alone,
  };
}

function turnsAfter({ kind, decodes }: Turns, feeds: readonly Feed[], last: Turns['last']): Turns {
  const [first, latest] = [feeds[0]?.kind, feeds.at(-1)?.kind];
  return { last, kind: latest ?? kind, decodes: latest === 'prompt' ? 0 : decodes + (first === 'decode' ? 1 : 0) };
}

const rowTokens = ({ session, rowCount }: Feed): readonly TokenId[] =>
  session.history.tokens.slice(session.sentRows, session.sentRows + rowCount);

function fed(head: HeadState, feeds: readonly Feed[], itemsSent: number): HeadState {
  const outbox = itemsSent === head.outbox.length ? [] : head.outbox.slice(itemsSent);
  const framesSent = head.framesSent + 1;
  let { sessions, requests } = head;
  const last: Record<TurnKind, SessionId | null> = { ...head.turns.last };
  for (const { kind, session, request, rowCount, again, alone } of feeds) {
    const sentRows = session.sentRows + rowCount;
    const rows = again ? session.rows : appendMarks(session.rows, rowCount, alone);
    sessions = sessions.with(session.id, changedSession(session, { rows, sentRows }));
    const sampledBy = sentRows === session.history.length ? framesSent : null;
    requests = requests.with(request.id, changedRequest(request, { sampledBy, fedAgain: request.fedAgain || again }));
    last[kind] = session.id;
  }
  const turns = turnsAfter(head.turns, feeds, last);
  const framesInFlight = head.framesInFlight + 1;
  return changedHead(head, { outbox, framesSent, framesInFlight, sessions, requests, turns });
}
