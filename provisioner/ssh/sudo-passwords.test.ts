import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { ScriptedPrompt } from '../../test/fixture/operator-home.ts';
import { SudoPasswords } from './sudo-passwords.ts';

const ask = { kind: 'ask' } as const;
const signal = new AbortController().signal;
const ant = { host: 'ant', user: 'ops' };
const bee = { host: 'bee', user: 'ops' };

suite('passwords of sudo', () => {
  test('one answer serves all hosts of the same user name, another user has one of their own', async () => {
    const prompt = new ScriptedPrompt(['one', 'two']);
    const passwords = new SudoPasswords(prompt);
    assert.deepEqual(await Promise.all([ant, bee].map((who) => passwords.first(ask, who, signal))), ['one', 'one']);
    assert.equal(await passwords.first(ask, { host: 'ant', user: 'root2' }, signal), 'two');
    assert.deepEqual(prompt.questions, ['sudo password of ops', 'sudo password of root2']);
    assert.equal(await passwords.first({ kind: 'none' }, ant, signal), null);
  });

  test('one that no host took is asked for again, once for all', async () => {
    const prompt = new ScriptedPrompt(['wrong', 'right']);
    const passwords = new SudoPasswords(prompt);
    const refused = String(await passwords.first(ask, ant, signal));
    const next = [ant, bee].map((who) => passwords.afterRefusal(ask, who, { refused, signal }));
    assert.deepEqual(await Promise.all(next), ['right', 'right']);
    assert.equal(prompt.questions.length, 2);
  });

  test('where another host took it, the one that refuses has its own, and keeps it', async () => {
    const prompt = new ScriptedPrompt(['fleet', 'bees']);
    const passwords = new SudoPasswords(prompt);
    const refused = String(await passwords.first(ask, ant, signal));
    passwords.noteTaken(ant, refused);
    assert.equal(await passwords.afterRefusal(ask, bee, { refused, signal }), 'bees');
    assert.equal(prompt.questions[1], 'sudo password of ops on bee');
    assert.equal(await passwords.first(ask, bee, signal), 'bees');
    assert.equal(await passwords.first(ask, ant, signal), 'fleet');
  });

  test('who does not answer is asked again the next time', async () => {
    const prompt = new ScriptedPrompt();
    const passwords = new SudoPasswords(prompt);
    await assert.rejects(passwords.first(ask, ant, signal));
    await assert.rejects(passwords.first(ask, ant, signal));
    assert.equal(prompt.questions.length, 2);
  });
});
