import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { houseFiles, tell, typescriptFiles } from './house-files.ts';
import { barrels, wrongNames } from './names.ts';

const files = typescriptFiles(houseFiles());

suite('names in this checkout', () => {
  test('are kebab-case and say something', () => {
    assert.deepEqual(wrongNames(files).map(tell), []);
  });

  test('stand for files with something in them', () => {
    assert.deepEqual(barrels(files).map(tell), []);
  });
});

suite('name rules see', () => {
  const namesAt = (path: string): readonly string[] => wrongNames([{ path, text: '' }]).map(tell);
  const isBarrel = (text: string): boolean => barrels([{ path: 'a.ts', text }]).length === 1;

  test('other cases than kebab', () => {
    assert.deepEqual(namesAt('agent/hopFrame.ts'), ['agent/hopFrame.ts: hopFrame is not kebab-case']);
    assert.equal(namesAt('agent/hop_frame.ts').length, 1);
    assert.equal(namesAt('agent/Head/frame.ts').length, 1);
  });

  test('words that fit everything, in files and folders', () => {
    for (const path of [
      'agent/utils.ts',
      'agent/ring-manager.ts',
      'test/helpers/a.ts',
      'model/gguf-info.test.ts',
      'agent/index.ts',
    ]) {
      assert.equal(namesAt(path).length, 1, path);
    }
  });

  test('good names, and stay silent', () => {
    for (const path of ['model/metadata.ts', 'test/two-agents.ring.test.ts', 'agent/head/main.ts', 'model/gpt2.ts']) {
      assert.deepEqual(namesAt(path), [], path);
    }
  });

  test('barrels, however they are written', () => {
    assert.ok(isBarrel("export * from './b.ts';"));
    assert.ok(isBarrel("export { b } from './b.ts';\nexport type { C } from './c.ts';"));
    assert.ok(isBarrel("import { b } from './b.ts';\nexport { b };"));
  });

  test('files with something of their own, and stay silent', () => {
    assert.equal(isBarrel("export { b } from './b.ts';\nexport const own = 1;"), false);
    assert.equal(isBarrel("import './b.ts';"), false);
    assert.equal(isBarrel(''), false);
  });
});
