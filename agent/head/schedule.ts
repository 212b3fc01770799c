/**
 * Which rows go round next.
 *
 * A frame takes the waiting items, then one row of every session that decodes, then a chunk of one prompt, up to one
 * shape class of rows. The head stage has at most `limits.headFrames` frames: one that it computes and one that waits,
 * so it never idles and a cancellation never queues behind more than that.
 */
import type { HopItem, RowsItem } from '../../protocol/hop-items.ts';
import type { SessionId, TokenId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { withEntry, type HeadState, type RunningRequest, type SessionState } from './head-state.ts';

/** `tokens`: one for each row of `items`, in order. */
export interface FrameDraft {
  readonly items: readonly HopItem[];
  readonly tokens: readonly TokenId[];
}

export interface Scheduled {
  readonly head: HeadState;
  readonly frames: readonly FrameDraft[];
}

/** Rows that one session feeds with this frame. */
interface Feed {
  readonly session: SessionState;
  readonly request: RunningRequest;
  readonly rowCount: number;
}

export function schedule(head: HeadState): Scheduled {
  const frames: FrameDraft[] = [];
  let current = head;
  while (current.framesInFlight < limits.headFrames) {
    const feeds = chooseFeeds(current);
    if (feeds.length === 0 && current.outbox.length === 0) break;
    const rows = feeds.map(rowsItem);
    frames.push({ items: [...current.outbox, ...rows], tokens: feeds.flatMap(rowTokens) });
    current = feeds.reduce(fed, { ...current, outbox: [], framesInFlight: current.framesInFlight + 1 });
  }
  return { head: current, frames };
}

function chooseFeeds(head: HeadState): Feed[] {
  const feeds: Feed[] = [];
  let room = limits.cpuDecodeRows;
  let prefills = 0;
  for (const { session, request, waiting } of inTurn(head)) {
    if (room === 0) break;
    const prefill = waiting > 1;
    if (prefill && prefills++ > 0) continue;
    const rowCount = Math.min(waiting, room);
    feeds.push({ session, request, rowCount });
    room -= rowCount;
  }
  return feeds;
}

/** Sessions with rows to feed: those that decode first, then prompts; each kind from the one after the last fed. */
function inTurn(head: HeadState): { session: SessionState; request: RunningRequest; waiting: number }[] {
  const ready = [];
  for (const session of head.sessions.values()) {
    const request = session.request === null ? undefined : head.requests.get(session.request);
    if (request?.kind !== 'running' || request.awaitsToken) continue;
    ready.push({ session, request, waiting: session.history.length - session.sentRows });
  }
  const after = head.lastFed ?? -1;
  const turn = (id: SessionId): number => (id > after ? 0 : 1);
  return ready.sort(
    (a, b) =>
      Number(a.waiting > 1) - Number(b.waiting > 1) ||
      turn(a.session.id) - turn(b.session.id) ||
      a.session.id - b.session.id,
  );
}

function rowsItem({ session, request, rowCount }: Feed): RowsItem {
  return {
    kind: 'rows',
    session: session.id,
    request: request.id,
    slot: session.slot,
    step: request.emitted,
    firstPosition: session.sentRows,
    rowCount,
    phase: request.emitted === 0 ? 'prefill' : 'decode',
    samples: session.sentRows + rowCount === session.history.length,
  };
}

const rowTokens = ({ session, rowCount }: Feed): readonly TokenId[] =>
  session.history.tokens.slice(session.sentRows, session.sentRows + rowCount);

function fed(head: HeadState, { session, request, rowCount }: Feed): HeadState {
  const sentRows = session.sentRows + rowCount;
  return {
    ...head,
    sessions: withEntry(head.sessions, session.id, { ...session, sentRows }),
    requests: withEntry(head.requests, request.id, { ...request, awaitsToken: sentRows === session.history.length }),
    lastFed: session.id,
  };
}
