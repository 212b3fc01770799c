/**
 * Which rows go round next.
 *
 * A frame takes the waiting items, then one row of every session that decodes, then a chunk of one prompt, up to one
 * shape class of rows. The head stage has at most `limits.headFrames` frames: one that it computes and one that waits,
 * so it never idles and a cancellation never queues behind more than that.
 *
 * R3: rows that were lost run again like a prompt's, in the shape in which they first ran: one that was alone in its frame
 * has a frame of its own again.
 */
import type { HopItem, RowsItem } from '../../protocol/hop-items.ts';
import type { SessionId, TokenId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { appendMarks, withEntry, type HeadState, type RunningRequest, type SessionState } from './head-state.ts';

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

/** Rows that one session feeds with this frame. */
interface Feed {
  readonly session: SessionState;
  readonly request: RunningRequest;
  readonly rowCount: number;
  /** Whether they ran before a loss. */
  readonly again: boolean;
  /** Whether they have to run by themselves. */
  readonly alone: boolean;
}

export function schedule(head: HeadState): Scheduled {
  const frames: FrameDraft[] = [];
  let current = head;
  while (current.framesInFlight < limits.headFrames) {
    const waiting = waitingItems(current.outbox);
    const feeds = waiting.length < current.outbox.length ? [] : chooseFeeds(current);
    if (feeds.length === 0 && waiting.length === 0) break;
    frames.push({ items: [...waiting, ...feeds.map(rowsItem)], tokens: feeds.flatMap(rowTokens) });
    current = fed(current, feeds, waiting.length);
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

function chooseFeeds(head: HeadState): Feed[] {
  const ready = inTurn(head);
  const lone = ready.find(({ session }) => mustRunAlone(session));
  const others = lone === undefined ? ready : ready.filter(({ session }) => !mustRunAlone(session));
  // A row that runs alone takes turns with all the others.
  if (lone !== undefined && (others.length === 0 || head.lastFed !== lone.session.id)) {
    return [{ ...lone, rowCount: 1, again: true, alone: true }];
  }
  return sharedFeeds(others);
}

function sharedFeeds(ready: readonly Waiting[]): Feed[] {
  const feeds: Feed[] = [];
  let room = limits.cpuDecodeRows;
  let prefills = 0;
  for (const { session, request, rows } of ready) {
    if (room === 0) break;
    if (rows > 1 && prefills++ > 0) continue;
    const lost = rowsAgain(session);
    const rowCount = Math.min(lost > 0 ? lost : rows, room);
    feeds.push({ session, request, rowCount, again: lost > 0, alone: false });
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

/** Sessions with rows to feed: those that decode first, then prompts; each kind from the one after the last fed. */
function inTurn(head: HeadState): Waiting[] {
  const ready: Waiting[] = [];
  for (const session of head.sessions.values()) {
    const request = session.request === null ? undefined : head.requests.get(session.request);
    if (request?.kind !== 'running' || request.awaitsToken) continue;
    ready.push({ session, request, rows: session.history.length - session.sentRows });
  }
  const after = head.lastFed ?? -1;
  const turn = (id: SessionId): number => (id > after ? 0 : 1);
  return ready.sort(
    (a, b) =>
      Number(a.rows > 1) - Number(b.rows > 1) || turn(a.session.id) - turn(b.session.id) || a.session.id - b.session.id,
  );
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

const rowTokens = ({ session, rowCount }: Feed): readonly TokenId[] =>
  session.history.tokens.slice(session.sentRows, session.sentRows + rowCount);

function fed(head: HeadState, feeds: readonly Feed[], itemsSent: number): HeadState {
  const outbox = itemsSent === head.outbox.length ? [] : head.outbox.slice(itemsSent);
  const sent: HeadState = { ...head, outbox, framesInFlight: head.framesInFlight + 1 };
  const isLone = feeds.length === 1 && feeds[0]?.rowCount === 1 && head.decode === 'fast';
  return feeds.reduce((state, feed) => rowsFed(state, feed, isLone), sent);
}

function rowsFed(head: HeadState, { session, request, rowCount, again }: Feed, isLone: boolean): HeadState {
  const sentRows = session.sentRows + rowCount;
  const rows = again ? session.rows : appendMarks(session.rows, rowCount, isLone);
  return {
    ...head,
    sessions: withEntry(head.sessions, session.id, { ...session, rows, sentRows }),
    requests: withEntry(head.requests, request.id, {
      ...request,
      awaitsToken: sentRows === session.history.length,
      fedAgain: request.fedAgain || again,
    }),
    lastFed: session.id,
  };
}
