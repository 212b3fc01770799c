import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

import { shellQuoted, shellWords } from './shell-quoting.ts';

const words = [
  '',
  'plain-word_1.2/3:4,5@6%7+8',
  "it's",
  "'",
  "''\\''",
  'a b\tc\nd',
  '$(touch /nowhere) `id` ${HOME} $1 !!',
  '\\ \\n \\',
  '"double"',
  '*?[a-z]{1,2}~',
  '~',
  '-n',
  '#no comment',
  '; & | < > ( )',
  'ümlaut ☃ \u0001\u007f',
];

test('every word comes out of a shell as it went in', () => {
  for (const word of words) {
    const said = execFileSync('sh', ['-c', `printf '%s|' ${shellQuoted(word)}`], { encoding: 'utf8' });
    assert.equal(said, `${word}|`);
  }
  const all = execFileSync('sh', ['-c', `printf '<%s>' ${shellWords(...words)}`], { encoding: 'utf8' });
  assert.equal(all, words.map((word) => `<${word}>`).join(''));
});

test('plain words stay readable, and a NUL is nobody’s word', () => {
  assert.equal(shellQuoted('/opt/p4/current'), '/opt/p4/current');
  assert.equal(shellQuoted('a b'), "'a b'");
  assert.throws(() => shellQuoted('a\0b'));
});
