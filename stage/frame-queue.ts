/** Frames that wait, read item by item; the rows of an item come with it. */
import { assert } from '../protocol/assert.ts';
import { noStep, type Frame, type StepTime } from '../protocol/hop-frame.ts';
import { hiddenRows } from '../protocol/hidden-state.ts';
import type { HopItem } from '../protocol/hop-items.ts';
import type { RowSource } from './row-batch.ts';

/** Where the stream stands. */
export type NextItem =
  | { readonly kind: 'item'; readonly item: HopItem; readonly rows: RowSource }
  /** The frame at hand has no more items. */
  | { readonly kind: 'frame-end' }
  | { readonly kind: 'empty' };

const noRows: RowSource = { tokens: new Uint32Array(0), hidden: null };

export class FrameQueue {
  #frames: Frame[] = [];
  #item = 0;
  #row = 0;

  get length(): number {
    return this.#frames.length;
  }

  /** Items of the frame at hand, when none of it was taken; else 0. */
  get freshItems(): number {
    return this.#item === 0 ? (this.#frames[0]?.items.length ?? 0) : 0;
  }

  /** What the frame at hand says of the decodes that it has been in. */
  get slowest(): StepTime {
    return this.#frames[0]?.slowest ?? noStep;
  }

  add(frame: Frame): void {
    this.#frames.push(frame);
  }

  /** What `take` takes. */
  peek(): NextItem {
    const frame = this.#frames[0];
    if (frame === undefined) return { kind: 'empty' };
    const item = frame.items[this.#item];
    if (item === undefined) return { kind: 'frame-end' };
    return { kind: 'item', item, rows: item.kind === 'rows' ? this.#rowsAt(frame, item.rowCount) : noRows };
  }

  take(): void {
    const frame = this.#frames[0];
    assert(frame !== undefined, 'only what is there is taken');
    const item = frame.items[this.#item];
    if (item === undefined) {
      this.#frames.shift();
      this.#item = 0;
      this.#row = 0;
      return;
    }
    if (item.kind === 'rows') this.#row += item.rowCount;
    this.#item += 1;
  }

  #rowsAt({ tokens, hidden, width }: Frame, count: number): RowSource {
    const from = this.#row;
    const to = from + count;
    assert(to <= tokens.length, 'the items of a frame have its rows');
    return {
      tokens: tokens.subarray(from, to),
      hidden: hidden === null ? null : hiddenRows(hidden, { from, to, width }),
    };
  }
}
