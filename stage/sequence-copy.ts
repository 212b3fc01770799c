/**
 * Takes rows of a sequence out of the KV cache and puts them into the next empty cells, bytes unchanged.
 *
 * libllama leaves out what lies outside a sliding window, seen from the sequence's last row. So rows go through the reserved
 * sequence in pieces no longer than the window, each of which is whole.
 */
import { assert } from '../protocol/assert.ts';
import type { LlamaLibrary } from './llama-library.ts';
import type { Pointer } from './llama-structs.ts';

export interface SequencePlace {
  readonly library: LlamaLibrary;
  readonly model: Pointer;
  readonly context: Pointer;
  readonly memory: Pointer;
  /** A sequence that is empty whenever rows are copied. */
  readonly reserved: number;
}

/** Rows of a sequence, from `from` (included) to `to` (excluded). */
export interface SequenceRows {
  readonly sequence: number;
  readonly from: number;
  readonly to: number;
}

/** Some rows as libllama keeps them. */
export interface SavedPiece {
  readonly from: number;
  readonly to: number;
  readonly state: Uint8Array;
}

export function saveRows(place: SequencePlace, { sequence, from, to }: SequenceRows): SavedPiece[] {
  const { call } = place.library;
  const window = call.modelWindow(place.model);
  const most = window > 0 ? window : Math.max(1, to - from);
  const pieces: SavedPiece[] = [];
  for (let start = from; start < to; start += most) {
    const end = Math.min(start + most, to);
    call.sequenceCopy(place.memory, sequence, place.reserved, start, end);
    const state = new Uint8Array(call.stateBytes(place.context, place.reserved));
    const written = call.stateGet(place.context, state, state.length, place.reserved);
    call.sequenceRemove(place.memory, place.reserved, -1, -1);
    assert(written === state.length, 'the rows of a sequence are taken out');
    pieces.push({ from: start, to: end, state });
  }
  return pieces;
}

/** Puts rows into a sequence that has none at these positions. There must be room. */
export function restoreRows(place: SequencePlace, sequence: number, pieces: readonly SavedPiece[]): void {
  const { call } = place.library;
  for (const { from, to, state } of pieces) {
    const read = call.stateSet(place.context, state, state.length, place.reserved);
    assert(read === state.length, 'the rows of a sequence are put back');
    call.sequenceCopy(place.memory, place.reserved, sequence, from, to);
    call.sequenceRemove(place.memory, place.reserved, -1, -1);
  }
}
