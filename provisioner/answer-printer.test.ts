import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';

import { AnswerPrinter } from './answer-printer.ts';
import { Terminal } from './terminal.ts';

/** What is printed about an answer of `completionTokens` that was read from token `from` on. */
function printed(mode: 'text' | 'json', from: number, completionTokens: number): { out: string; err: string } {
  const out = new PassThrough();
  const err = new PassThrough();
  const printer = new AnswerPrinter(new Terminal(mode, { out, err }), { seed: null, maxTokens: null });
  printer.beyond(from, completionTokens);
  return { out: String(out.read() ?? ''), err: String(err.read() ?? '') };
}

test('who reads from beyond the end is told beside the answer that nothing is there', () => {
  assert.deepEqual(printed('text', 601, 600), { out: '', err: 'The answer has 600 tokens: none from 601 on.\n' });
  assert.deepEqual(printed('text', 1, 1), { out: '', err: 'The answer has 1 token: none from 1 on.\n' });
});

test('nothing is said where something is there, where all was wanted, and with --json', () => {
  for (const silent of [printed('text', 599, 600), printed('text', 0, 0), printed('json', 601, 600)])
    assert.deepEqual(silent, { out: '', err: '' });
});
