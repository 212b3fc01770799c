import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { houseFiles, tell, typescriptFiles } from './house-files.ts';
import { fileLines, lineCount, longFiles, longFunctions } from './sizes.ts';

const files = typescriptFiles(houseFiles());

suite('sizes in this checkout', () => {
  test('of files are at most 400 lines', (t) => {
    assert.deepEqual(longFiles(files).map(tell), []);
    const wide = files.filter((file) => lineCount(file) > fileLines.aim);
    const named = wide.map((file) => `${file.path} ${String(lineCount(file))}`);
    if (named.length > 0) t.diagnostic(`over ${String(fileLines.aim)} lines: ${named.join(', ')}`);
  });

  test('of functions are at most 70 lines', () => {
    assert.deepEqual(longFunctions(files).map(tell), []);
  });
});

suite('size rules see', () => {
  const statements = (count: number): string =>
    Array.from({ length: count }, (_, index) => `f(${String(index)});`).join('\n');
  const functionsOf = (text: string): number => longFunctions([{ path: 'a.ts', text }]).length;

  test('a file of 401 lines, and not one of 400', () => {
    const ofLines = (count: number): readonly string[] =>
      longFiles([{ path: 'a.ts', text: `${statements(count)}\n` }]).map(tell);
    assert.deepEqual(ofLines(401), ['a.ts: has 401 lines; 400 is the most']);
    assert.deepEqual(ofLines(400), []);
  });

  test('a function of 71 lines, of every kind', () => {
    const body = statements(68);
    for (const text of [
      `function a() {\n${body}\n}`,
      `const a = () => {\n${body}\n};`,
      `class A {\na() {\n${body}\n}\n}`,
      `const a = async function () {\n${body}\n};`,
      `test('a', () => {\n${body}\n});`,
    ]) {
      assert.equal(functionsOf(text), 0, text.slice(0, 30));
      assert.equal(functionsOf(text.replace('f(0);', 'f(0);\nf(0);')), 1, text.slice(0, 30));
    }
  });

  test('code, not comments and blank lines', () => {
    const padding = Array.from({ length: 100 }, () => '// why\n\n/* and\n   why */').join('\n');
    assert.equal(functionsOf(`function a() {\n${padding}\n}`), 0);
  });

  test('a suite’s body as many tests, a test as one function', () => {
    assert.equal(functionsOf(`suite('a', () => {\n${statements(90)}\n});`), 0);
    assert.equal(functionsOf(`suite('a', () => {\ntest('b', () => {\n${statements(90)}\n});\n});`), 1);
  });
});
