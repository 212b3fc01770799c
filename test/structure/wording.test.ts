import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { houseFiles, tell } from './house-files.ts';
import { unwantedWords } from './wording.ts';

test('no file of this checkout holds what does not belong in it', () => {
  const files = houseFiles();
  assert.ok(
    files.some(({ path }) => path === 'package-lock.json'),
    'the lock file is looked at',
  );
  assert.deepEqual(unwantedWords(files).map(tell), []);
});

suite('wording rules see', () => {
  const foundIn = (text: string, path = 'agent/a.ts'): number => unwantedWords([{ path, text }]).length;
  /** Puts a word together that this file may not hold. */
  const word = (...parts: readonly string[]): string => parts.join('');
  const [work, temporary] = [word('/wo', 'rk'), word('/t', 'mp')];

  test('notes to oneself', () => {
    const note = word('TO', 'DO');
    assert.deepEqual(unwantedWords([{ path: 'a.ts', text: `\n// ${note}: later` }]).map(tell), [
      `a.ts:2: "${note}": a note to oneself: do it, or file it`,
    ]);
    assert.equal(foundIn(word('// FIX', 'ME')), 1);
    assert.equal(foundIn(word('// X', 'XX what')), 1);
    assert.equal(foundIn("mkdtemp(join(tmpdir(), 'p4-XXXXXX'))"), 0);
  });

  test('paths of a machine', () => {
    for (const path of [`${work}/main/a`, `'${temporary}/x'`, `cd ${work}`, `file://${temporary}/a`]) {
      assert.equal(foundIn(path), 1, path);
    }
    for (const path of ['a/work/b', '/worker', '/var/tmp-1', 'net/tmp/x', './tmp/x']) {
      assert.equal(foundIn(path), 0, path);
    }
    assert.equal(foundIn(word('../sha', 'red/models/a.gguf')), 1);
  });

  test('where packages came from', () => {
    assert.equal(foundIn(word('https://regis', 'try.npm', 'js.org/a')), 1);
    assert.equal(foundIn('"resolved": "https://example.org/a.tgz"', 'package-lock.json'), 1);
    assert.equal(foundIn('const a = { "resolved": 1 }'), 0);
  });

  test('how the project was made', () => {
    assert.equal(foundIn(word('Co-Author', 'ed-By: somebody')), 1);
    assert.equal(foundIn(word('as an A', 'I wrote')), 1);
    assert.equal(foundIn(word('see iss', 'ue 2')), 1);
    assert.equal(foundIn('the agent issues a settlement; MAIL, gpt-oss'), 0);
  });
});
