/**
 * What a stage does with hop frames: items in, in order, and items out, with the decodes of one step in between.
 *
 * - Rows of all waiting frames are gathered, up to one shape class (X2), and decoded together; a rows item is never split.
 *   Not so at the head stage, where frames wait in groups that are to keep all stages busy (`agent/head/schedule.ts`).
 * - An item that is `alone` is decoded by itself, whatever waits, and goes on with those of its frame; a row that is
 *   recomputed and not `alone` never is (R3).
 * - Rows that are recomputed fill the KV cache and advance the lease like all others; the sampler hears nothing of them.
 * - Items keep their order. One that touches a slot or request with gathered rows waits for their decode.
 * - A refused frame changes nothing (G3). A frame that contradicts earlier ones ends the stage: STAGE_PROTOCOL.
 * - A request that failed here has its rows dropped until its `end`. Then its session's KV is only sure to hold what it
 *   held at `begin`: the head cuts it back to that, or closes the session.
 */
import { assert, present, unreachable } from '../protocol/assert.ts';
import { hiddenRows } from '../protocol/hidden-state.ts';
import { FrameRoom, noStep, type Frame, type FrameContent, type StepTime } from '../protocol/hop-frame.ts';
import type {
  CloseItem,
  FailedItem,
  FailedWhy,
  HopItem,
  KeepItem,
  LeaseItem,
  RowsItem,
} from '../protocol/hop-items.ts';
import { nodeIndex } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { DecodeOutcome, Engine, RowLogits } from './engine.ts';
import { checkFrame, type FrameShape, type StageIdentity } from './frame-check.ts';
import { FrameQueue } from './frame-queue.ts';
import { applyLeaseItem } from './lease-items.ts';
import { contradiction, LeaseTable } from './lease.ts';
import { probeEngine } from './probe-row.ts';
import { ReceiptBook, type OpenRequest } from './receipt-book.ts';
import { RowBatch, type RowGroup, type RowPiece, type RowSource } from './row-batch.ts';
import type { StageCounters } from './stage-counters.ts';
import { TailSampling, type OpenSampler } from './tail-sampling.ts';

export type CoreEngine = Pick<
  Engine,
  | 'width'
  | 'wire'
  | 'takesTokens'
  | 'isFinal'
  | 'reservedSequence'
  | 'decode'
  | 'clear'
  | 'removeSequence'
  | 'truncateSequence'
  | 'copySequence'
  | 'renameSequence'
> & { readonly vocabulary: { readonly size: number } };

export interface StageParts {
  readonly identity: StageIdentity;
  readonly engine: CoreEngine;
  /** Used on the tail alone. */
  readonly openSampler: OpenSampler;
  readonly counters: StageCounters;
  /** A clock that only goes forward, in microseconds. */
  readonly nowUs: () => number;
}

/** An item that goes out as it is, or rows that are about to be decoded. */
type Outgoing = { readonly kind: 'item'; readonly item: HopItem } | { readonly kind: 'rows'; readonly group: RowGroup };

/** A piece that was decoded. What came of it is there until the next one is. */
interface DecodedPiece {
  readonly piece: RowPiece;
  readonly outcome: DecodeOutcome;
  readonly time: StepTime;
}

/** The decodes of one step, in the order of its rows. */
interface Decoding {
  /** For the hidden state of all of them; `null` on the tail. */
  readonly room: FrameRoom | null;
  readonly pieces: readonly RowPiece[];
  /** So far. */
  readonly ran: DecodedPiece[];
}

export class StageCore {
  readonly #parts: StageParts;
  readonly #shape: FrameShape;
  readonly #queue = new FrameQueue();
  readonly #batch = new RowBatch(limits.cpuDecodeRows);
  #leases: LeaseTable;
  #book: ReceiptBook;
  #tail: TailSampling | null;

  constructor(parts: StageParts) {
    const { engine, identity } = parts;
    this.#parts = parts;
    this.#shape = {
      width: engine.takesTokens ? 0 : engine.width,
      wire: engine.wire,
      vocabularySize: engine.takesTokens || engine.isFinal ? engine.vocabulary.size : null,
    };
    this.#leases = new LeaseTable(identity);
    this.#book = new ReceiptBook(identity);
    this.#tail = engine.isFinal ? new TailSampling(parts.openSampler) : null;
  }

  /** Frames that are not finished. */
  get waitingFrames(): number {
    return this.#queue.length;
  }

  /** @throws GENERATION_MISMATCH, FRAME_INVALID: nothing has changed then */
  accept(frame: Frame): void {
    checkFrame(frame, this.#parts.identity, this.#shape);
    this.#queue.add(frame);
  }

  /** All but the weights and the counters as after the load: no frames, leases, requests or KV. For a new data connection. */
  reset(): void {
    const { engine, identity, openSampler } = this.#parts;
    while (this.#queue.length > 0) this.#queue.take();
    this.#batch.clear();
    engine.clear();
    this.#tail?.close();
    this.#leases = new LeaseTable(identity);
    this.#book = new ReceiptBook(identity);
    this.#tail = engine.isFinal ? new TailSampling(openSampler) : null;
    this.#countCells();
  }

  /**
   * Applies waiting items up to and with one decode.
   *
   * @returns the frame that goes on
   * @throws STAGE_PROTOCOL, STAGE_DECODE: this stage is done then
   */
  step(): FrameContent {
    assert(this.#queue.length > 0, 'a frame waits');
    const outgoing: Outgoing[] = [];
    let completes = 0;
    let slowest = noStep;
    for (let next = this.#queue.peek(); next.kind !== 'empty'; next = this.#queue.peek()) {
      if (next.kind === 'frame-end') {
        completes += 1;
        this.#queue.take();
        if (this.#batch.rows > 0 && (this.#parts.engine.takesTokens || this.#batch.hasLoneRows)) break;
        continue;
      }
      if (!this.#canTake(next.item, completes > 0) || !this.#fits(outgoing.length)) break;
      if (next.item.kind === 'rows') {
        slowest = slower(slowest, this.#queue.slowest);
        outgoing.push(...this.#gather(next.item, next.rows));
      } else outgoing.push(...this.#apply(next.item).map((item): Outgoing => ({ kind: 'item', item })));
      this.#queue.take();
    }
    const content = this.#finish(outgoing, { completes, slowest });
    this.#batch.clear();
    this.#countCells();
    return content;
  }

  /**
   * Whether the item can go into this step: not when it has to wait for the decode of the rows gathered so far.
   * @param isOfLater whether a frame before its own is finished with this step
   */
  #canTake(item: HopItem, isOfLater: boolean): boolean {
    if (this.#batch.rows === 0) return true;
    switch (item.kind) {
      case 'rows':
        return this.#canGather(item, isOfLater);
      case 'open':
      case 'begin':
      case 'adopt':
      case 'truncate':
      case 'close':
      case 'keep':
        return !this.#batch.holdsSlot(item.slot);
      case 'end':
      case 'failed':
        return !this.#batch.holdsRequest(item.request, item.session);
      case 'drop':
      case 'token':
      case 'probe':
        return true;
      default:
        return unreachable(item);
    }
  }

  #canGather(item: RowsItem, isOfLater: boolean): boolean {
    return !(item.alone && isOfLater) && this.#batch.takes(item) && !this.#awaitsDraw(item);
  }

  /** Whether what goes out has room for another frame's items. One alone always fits, even if all in it failed here. */
  #fits(outgoingItems: number): boolean {
    return outgoingItems === 0 || outgoingItems + 2 * this.#queue.freshItems <= limits.frameItems;
  }

  /** Rows behind a draw of the same request: should that fail, they are dropped. */
  #awaitsDraw({ request }: RowsItem): boolean {
    return this.#tail !== null && this.#batch.groups.some(({ item }) => item.request === request && item.samples);
  }

  #gather(item: RowsItem, source: RowSource): Outgoing[] {
    const lease = this.#leases.held(item.session, item.slot);
    const request = this.#book.going(item.request, item.session);
    if (request.failed !== null) return [];
    if (item.firstPosition !== lease.length) {
      const { session, slot, firstPosition } = item;
      throw contradiction('rows', 'another position than the next', {
        session,
        slot,
        firstPosition,
        next: lease.length,
      });
    }
    lease.length += item.rowCount;
    return [{ kind: 'rows', group: this.#batch.add(item, request, source) }];
  }

  /** @returns what goes on instead of the item, the item first */
  #apply(item: Exclude<HopItem, RowsItem>): HopItem[] {
    const { engine } = this.#parts;
    switch (item.kind) {
      case 'begin': {
        this.#leases.held(item.session, item.slot);
        const request = this.#book.begin(item);
        const why = this.#tail?.begin(item) ?? null;
        return why === null ? [item] : [item, this.#fail(request, why)];
      }
      case 'end':
        this.#tail?.end(item.request);
        return [{ ...item, receipts: [...item.receipts, this.#book.end(item)] }];
      case 'close':
      case 'keep':
        this.#requireIdle(item);
        return [this.#applyLease(item)];
      case 'open':
      case 'adopt':
      case 'truncate':
      case 'drop':
        return [this.#applyLease(item)];
      case 'probe':
        probeEngine(engine);
        return [item];
      case 'token':
      case 'failed':
        return [item];
      default:
        return unreachable(item);
    }
  }

  #applyLease(item: LeaseItem): LeaseItem {
    const { engine, identity } = this.#parts;
    return applyLeaseItem({ leases: this.#leases, engine, sessions: identity.sessions }, item);
  }

  #requireIdle({ kind, session }: CloseItem | KeepItem): void {
    if (this.#book.goesOnFor(session)) throw contradiction(kind, 'a session whose request goes on', { session });
  }

  #finish(
    outgoing: readonly Outgoing[],
    { completes, slowest }: Pick<FrameContent, 'completes' | 'slowest'>,
  ): FrameContent {
    const room = this.#roomForRows();
    const decoding: Decoding = { room, pieces: this.#batch.pieces(), ran: [] };
    const tokens: number[] = [];
    const items = outgoing.flatMap((out) => {
      if (out.kind === 'item') return [out.item];
      const decoded = this.#decodedWith(out.group, decoding, tokens.length);
      if (decoded.outcome.kind === 'hidden') tokens.push(...this.#batch.tokensOf(out.group));
      return this.#afterDecode(out.group, decoded);
    });
    const { identity, engine } = this.#parts;
    // All rows, unless the cache was full for some.
    const goingOn = (whole: FrameRoom): Pick<FrameContent, 'hidden' | 'room'> =>
      tokens.length === this.#batch.rows
        ? { hidden: whole.hidden, room: whole }
        : { hidden: hiddenRows(whole.hidden, { from: 0, to: tokens.length, width: engine.width }), room: null };
    return {
      source: identity.node,
      destination: nodeIndex((identity.node + 1) % identity.stages),
      generation: identity.generation,
      number: 0n,
      completes,
      slowest: slower(slowest, stepTime(decoding.ran)),
      items,
      tokens: Uint32Array.from(tokens),
      ...(room === null || tokens.length === 0 ? { hidden: null, room: null } : goingOn(room)),
    };
  }

  /** The frame that goes on is made where the engine puts the hidden state. */
  #roomForRows(): FrameRoom | null {
    const { isFinal, width, wire } = this.#parts.engine;
    return isFinal || this.#batch.rows === 0 ? null : new FrameRoom({ rows: this.#batch.rows, width, wire });
  }

  /** Decodes the piece that the group is in, if the latest is another. */
  #decodedWith(group: RowGroup, { room, pieces, ran }: Decoding, at: number): DecodedPiece {
    const latest = ran.at(-1);
    if (latest?.piece.groups.includes(group) === true) return latest;
    const decoded = this.#decode(present(pieces[ran.length], 'the group is in a piece'), room, at);
    ran.push(decoded);
    return decoded;
  }

  /** @param at where its hidden state goes in the room: behind what others of the step have there */
  #decode(piece: RowPiece, room: FrameRoom | null, at: number): DecodedPiece {
    const { engine, nowUs, counters } = this.#parts;
    const { rows } = piece;
    const into =
      room === null ? {} : { into: hiddenRows(room.hidden, { from: at, to: at + rows, width: engine.width }) };
    const startedUs = nowUs();
    const outcome = engine.decode({ ...this.#batch.decodeBatch(piece), ...into });
    const spentUs = nowUs() - startedUs;
    const padding = outcome.kind === 'kv-cache-full' ? 0 : outcome.paddingRows;
    const ran = { prefill: 0, decode: 0, recompute: 0 };
    for (const { item, request } of piece.groups) {
      // Every request pays for its share of the rows, so that the times of all requests add up to the stage's.
      request.computeUs += (spentUs * item.rowCount) / rows;
      if (outcome.kind === 'kv-cache-full') continue;
      request.padding += padding;
      this.#book.count(request, item);
      ran[item.phase] += item.rowCount;
    }
    counters.add({ decodes: 1, computeSeconds: spentUs / 1e6, paddingRows: padding });
    counters.add({ prefilledRows: ran.prefill, decodedRows: ran.decode, recomputedRows: ran.recompute });
    // Padding is part of what so many rows cost here.
    return { piece, outcome, time: { rows: rows + padding, us: Math.min(Math.round(spentUs), mostStepUs) } };
  }

  #afterDecode(group: RowGroup, { piece, outcome }: DecodedPiece): HopItem[] {
    switch (outcome.kind) {
      case 'kv-cache-full':
        return this.#undo(group);
      case 'hidden':
        return [group.item];
      case 'logits':
        return this.#draw(group, { rows: outcome.rows, firstRow: group.firstRow - piece.firstRow });
      default:
        return unreachable(outcome);
    }
  }

  /** No row ran: the lease is as long as before, and the request has failed; said once for all its rows. */
  #undo({ item, request }: RowGroup): HopItem[] {
    const lease = this.#leases.held(item.session, item.slot);
    lease.length = Math.min(lease.length, item.firstPosition);
    return request.failed === null ? [this.#fail(request, 'kv-cache-full')] : [];
  }

  /** @param firstRow the group's, in the decode that gave the logits */
  #draw(
    group: RowGroup,
    { rows, firstRow }: { readonly rows: readonly RowLogits[]; readonly firstRow: number },
  ): HopItem[] {
    const { item, request } = group;
    const tail = present(this.#tail, 'only the tail has logits');
    // A token that was drawn is known to its sampler already, and `begin` brought what is recomputed.
    if (item.phase === 'prefill') tail.acceptPrompt(item.request, this.#batch.tokensOf(group));
    if (!item.samples) return [];
    const lastRow = firstRow + item.rowCount - 1;
    const found = present(
      rows.find(({ row }) => row === lastRow),
      'the row that samples has logits',
    );
    const drawn = tail.draw(item.request, item.step, found.logits);
    if (drawn.kind === 'failed') return [this.#fail(request, drawn.why)];
    const { session, step } = item;
    return [{ kind: 'token', session, request: item.request, step, token: drawn.token }];
  }

  #countCells(): void {
    const { counters } = this.#parts;
    counters.set('kvCellsUsed', this.#leases.usedCells);
    counters.set('kvCellsKept', this.#leases.keptCells);
  }

  #fail(request: OpenRequest, why: FailedWhy): FailedItem {
    request.failed = why;
    const { node } = this.#parts.identity;
    return { kind: 'failed', session: request.session, request: request.request, node, why };
  }
}

/** What a frame's header has room for. */
const mostStepUs = 2 ** 32 - 1;

/** Of several rows that were decoded alone, what one of them took on the average: the slowest would be dearer than most. */
function stepTime(ran: readonly DecodedPiece[]): StepTime {
  const isLone = ({ piece }: DecodedPiece): boolean => piece.groups[0]?.item.alone === true;
  const lone = ran.filter(isLone);
  const us = lone.reduce((sum, { time }) => sum + time.us, 0);
  const ofLone = lone.length === 0 ? noStep : { rows: 1, us: Math.round(us / lone.length) };
  return ran.reduce((slowest, piece) => (isLone(piece) ? slowest : slower(slowest, piece.time)), ofLone);
}

const slower = (one: StepTime, other: StepTime): StepTime => (one.us >= other.us ? one : other);
