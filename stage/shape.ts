/**
 * Shape classes (X2): decodes in one class round alike, so a row's result does not depend on what else is in its decode.
 *
 * Measured on CPUs with flash attention and a unified KV cache: a decode of one row takes other kernels than one of two or
 * more, and from 64 rows on another attention tile is used. Other backends have other thresholds; theirs are not measured.
 */
import { assert } from '../protocol/assert.ts';
import { limits } from '../protocol/limits.ts';

/** Rows of a decode in the one class that `decode: exact` uses on a CPU. */
export const exactRows = { least: 2, most: 63 } as const;

assert(exactRows.most === limits.cpuDecodeRows, 'a chunk never leaves the shape class');
