/** What an engine may be asked for. */
import { assert } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import type { SliceOptions } from './loaded-slice.ts';

/** llama.cpp's sequences, one of them reserved. */
const mostSequences = limits.sessions;
const mostBatchRows = 8192;
const mostThreads = 512;
/** llama.cpp keeps some 50 bytes for each cell beside its keys and values. */
const mostCells = 2 ** 24;

/** @throws INVALID_ARGUMENT for a value out of its range */
export function checkOptions(options: SliceOptions): void {
  checkRange('sequences', options.sequences, { least: 1, most: mostSequences });
  checkRange('batch rows', options.batchRows, { least: 1, most: mostBatchRows });
  checkRange('context tokens', options.contextTokens, { least: 1, most: mostCells });
  checkRange('threads', options.threads, { least: 1, most: mostThreads });
  checkRange('poll', options.poll ?? 0, { least: 0, most: 100 });
  assert(options.layers.first <= options.layers.last, 'a slice has layers');
  assert(options.layers.last < options.modelLayers, 'a slice ends within its model');
  assert(Number.isFinite(options.inputDivisor) && options.inputDivisor > 0, 'the input divisor is a positive number');
}

function checkRange(what: string, found: number, range: { readonly least: number; readonly most: number }): void {
  if (Number.isInteger(found) && found >= range.least && found <= range.most) return;
  const expected = `an integer from ${range.least} to ${range.most}`;
  throw new P4Error('INVALID_ARGUMENT', { what, found: String(found), expected });
}
