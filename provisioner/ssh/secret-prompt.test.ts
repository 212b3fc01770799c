import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { eventually } from '../../test/fixture/eventually.ts';
import { TerminalPrompt, typed } from './secret-prompt.ts';

const program = join(import.meta.dirname, '../../test/fixture/secret-question.js');

/** Runs a program that asks twice on a terminal of its own, and types when it asks. */
async function conversation(
  keys: readonly string[],
): Promise<{ readonly shown: string; readonly status: number | null }> {
  const child = spawn('script', ['-qec', `${process.execPath} ${program}`, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  const gone = new Promise<number | null>((resolve) => child.once('close', resolve));
  for (const [index, typing] of keys.entries()) {
    await eventually(() => shown.includes(`Question ${index + 1}: `), { what: `question ${index + 1} in ${shown}` });
    child.stdin.write(typing);
  }
  const status = await gone;
  return { shown, status };
}

suite('asking for a secret', () => {
  test('what is typed is not shown, and questions come one after the other', async () => {
    const { shown, status } = await conversation(['sesame\r', 'wrong\u0015bär\u007fen\r']);
    assert.equal(shown.replaceAll('\r\n', '\n'), 'Question 1: \nQuestion 2: \nanswers: emases neäb\n');
    assert.equal(status, 0);
  });

  test('Ctrl-C cancels', async () => {
    const { shown } = await conversation(['half\u0003']);
    assert.match(shown, /CANCELLED/);
    assert.ok(!shown.includes('half'));
  });

  test('without a terminal nobody is asked', async () => {
    for (const path of ['/dev/null', '/nowhere/tty']) {
      const prompt = new TerminalPrompt(() => undefined, path);
      await assert.rejects(
        prompt.ask('Password', new AbortController().signal),
        (error: unknown) => error instanceof P4Error && error.code === 'SECRET_NOT_GIVEN',
      );
    }
  });

  test('keys edit the line', () => {
    assert.deepEqual(typed('', 'abc\u007f\bd'), { kind: 'typing', line: 'ad' });
    assert.deepEqual(typed('ad', '\u0015x☃\r rest'), { kind: 'done', line: 'x☃' });
    assert.deepEqual(typed('x', '\u0004'), { kind: 'done', line: 'x' });
    assert.deepEqual(typed('', '\u0004'), { kind: 'cancelled' });
    assert.deepEqual(typed('secret', '\u0003'), { kind: 'cancelled' });
  });
});
