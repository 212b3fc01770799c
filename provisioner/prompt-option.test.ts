import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import { readPrompt, type PromptChoice } from './prompt-option.ts';

const never = new AbortController().signal;
const read = (choice: Partial<PromptChoice>): ReturnType<typeof readPrompt> =>
  readPrompt({ argument: undefined, tokens: undefined, input: Readable.from([]), signal: never, ...choice });
const fromInput = (...chunks: readonly Buffer[]): ReturnType<typeof readPrompt> =>
  read({ input: Readable.from(chunks) });

describe('a prompt', () => {
  test('is the argument, as it stands', async () => {
    assert.deepEqual(await read({ argument: ' a\n' }), { kind: 'text', text: ' a\n' });
    assert.deepEqual(await read({ argument: '' }), { kind: 'text', text: '' });
  });

  test('is a list of token ids', async () => {
    assert.deepEqual(await read({ tokens: '1,5, 9' }), { kind: 'tokens', ids: [1, 5, 9] });
    for (const tokens of ['', '1,,2', '-1', '1.5', 'x', '99999999999']) {
      await assert.rejects(read({ tokens }), { code: 'INVALID_ARGUMENT' }, tokens);
    }
    await assert.rejects(read({ tokens: '1', argument: 'x' }), { code: 'COMMAND_LINE_INVALID' });
  });

  test('is standard input without its last line end, whatever pieces it comes in', async () => {
    const bytes = Buffer.from('grüße 🌙\nund mehr\n');
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const prompt = await fromInput(bytes.subarray(0, cut), bytes.subarray(cut));
      assert.deepEqual(prompt, { kind: 'text', text: 'grüße 🌙\nund mehr' });
    }
    assert.deepEqual(await fromInput(Buffer.from('two\n\n')), { kind: 'text', text: 'two\n' });
  });

  test('is refused where it is no UTF-8', async () => {
    for (const bytes of [[0xff], [0xe2, 0x82], [0xc0, 0x80], [0xed, 0xa0, 0x80]]) {
      await assert.rejects(fromInput(Buffer.from(bytes)), { code: 'INVALID_ARGUMENT' });
    }
  });

  test('is waited for no longer than the command lives', async () => {
    const controller = new AbortController();
    const input = new Readable({ read: () => undefined });
    const waiting = read({ input, signal: controller.signal });
    controller.abort(new P4Error('CANCELLED', { by: 'SIGINT' }));
    await assert.rejects(waiting, { code: 'CANCELLED' });
    input.destroy();
  });
});
