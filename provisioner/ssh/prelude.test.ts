import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { suite, test } from 'node:test';

import { OutputReader, PreambleReader, scriptText, shellCommand } from './prelude.ts';

const word = 'p4-0123abcd';
const run = (shell: string, input: string) =>
  spawnSync(shell, ['-c', shellCommand(word, 'direct')], { input, encoding: 'utf8' });

suite('the prelude', () => {
  test('it says that it is there, runs the script, and leaves the rest of the input to it', () => {
    for (const shell of ['sh', 'bash', 'dash'].filter((name) => existsSync(`/bin/${name}`))) {
      const { status, stdout, stderr } = run(shell, `${scriptText(word, 'echo "in: $(cat)"\nexit 5')}one\ntwo`);
      assert.equal(status, 5);
      assert.equal(stdout, `${word}\nin: one\ntwo\n`);
      assert.match(stderr, new RegExp(`^${word} \\d+\\n$`));
    }
  });

  test('a script that arrived in part does not run', () => {
    const { status, stdout } = run('sh', 'echo first\necho second\n');
    assert.equal(stdout, `${word}\n`);
    assert.equal(status, 97);
  });

  test('a script with its own end in it is a bug', () => {
    assert.throws(() => scriptText(word, `echo\n${word}\necho`));
    assert.throws(() => scriptText(word, 'a\0b'));
  });

  test('the command line is one that every login shell takes alike', () => {
    for (const elevation of ['direct', 'sudo', 'sudo-asking'] as const) {
      const inside = /^exec [^']*'([^']+)' [a-z0-9-]+$/.exec(shellCommand(word, elevation))?.[1] ?? '';
      assert.notEqual(inside, '');
      assert.ok(!/[!\n]|\\(?!n)/.test(inside), inside);
    }
  });
});

suite('what comes before a script', () => {
  test('sudo’s questions are counted and its words kept, however the text is cut', () => {
    const text = Buffer.from(`lecture\n${word}-password:Sorry\n${word}-password:${word} 4711\nown error ${word} 1\n`);
    for (let cut = 0; cut <= text.length; cut++) {
      const reader = new PreambleReader(word);
      const own = Buffer.concat([reader.take(text.subarray(0, cut)), reader.take(text.subarray(cut))]);
      assert.equal(own.toString(), `own error ${word} 1\n`);
      assert.deepEqual(reader.preamble, { prompts: 2, pid: 4711 });
      assert.equal(reader.words, 'lecture\nSorry');
    }
  });

  test('output begins behind the word, however it is cut', () => {
    const text = Buffer.from(`noise\np4-\n${word}\nout\n${word}\n`);
    for (let cut = 0; cut <= text.length; cut++) {
      const reader = new OutputReader(word);
      const own = Buffer.concat([reader.take(text.subarray(0, cut)), reader.take(text.subarray(cut))]);
      assert.equal(own.toString(), `out\n${word}\n`);
    }
  });

  test('a shell that prints without end is noticed', () => {
    const errors = new PreambleReader(word);
    const output = new OutputReader(word);
    const noise = Buffer.alloc(300 * 1024, 'x');
    errors.take(noise);
    output.take(noise);
    assert.ok(errors.isTooLong && output.isTooLong);
  });
});
