import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDocument } from './document.ts';
import { faultsText } from './fault.ts';
import { limits } from './limits.ts';

const faultsOf = (text: string): string => faultsText(readDocument(text, 'f.yaml').faults);

test('a document is a plain value', () => {
  const { document, faults } = readDocument('a: 1\nb: [x, "y", null, 0x10, 1.5]\nc: { d: yes }\n', 'f.yaml');
  assert.deepEqual(faults, []);
  assert.deepEqual(document?.value, { a: 1, b: ['x', 'y', null, 16, 1.5], c: { d: 'yes' } });
});

test('an empty document is null', () => {
  assert.equal(readDocument('# nothing\n', 'f.yaml').document?.value, null);
  assert.equal(readDocument('', 'f.yaml').document?.value, null);
});

test('keys that objects have by nature are keys like others', () => {
  const { document } = readDocument('__proto__: 1\nconstructor: 2\n', 'f.yaml');
  assert.deepEqual(Object.entries(document?.value ?? {}), [
    ['__proto__', 1],
    ['constructor', 2],
  ]);
});

test('a pointer leads to the value, its key, or what should hold it', () => {
  const { document } = readDocument('a: &x\n  - b: 1\n    "c/d~": 2\ne: *x\n', 'f.yaml');
  const place = (pointer: string, part?: 'value' | 'key'): string => {
    const at = document?.locate(pointer, part);
    return `${at?.file ?? ''}:${at?.line ?? 0}:${at?.column ?? 0}`;
  };
  assert.equal(place(''), 'f.yaml:1:1');
  assert.equal(place('/a/0/b'), 'f.yaml:2:8');
  assert.equal(place('/a/0/b', 'key'), 'f.yaml:2:5');
  assert.equal(place('/a/0/c~1d~0'), 'f.yaml:3:13');
  assert.equal(place('/a/0/missing'), 'f.yaml:2:5');
  assert.equal(place('/a/7/b'), 'f.yaml:2:3');
  assert.equal(place('/e'), 'f.yaml:4:4');
  assert.equal(place('/e/0/b'), 'f.yaml:2:8');
});

test('what YAML does not allow is a fault at its place', () => {
  const cases = [
    ['a: 1\na: 2\n', 'f.yaml:2:1: found the key "a" again, expected each key once'],
    ['a:\n\t- b\n', 'f.yaml:2:1: found a tab, expected spaces: YAML does not allow tabs for indentation'],
    ['---\na: 1\n---\nb: 2\n', 'f.yaml:3:1: found another document, expected one document in the file'],
    ['[1', 'f.yaml:1:3: found the end of a line, expected the punctuation that closes or separates what stands before'],
    ['a: *x\n', 'f.yaml:1:4: found *x, expected an alias (*name) of an anchor (&name) that stands before it'],
    [
      'a: &x [*x]\n',
      'f.yaml:1:8: found *x inside its own value, expected an alias (*name) of an anchor (&name) that stands before it',
    ],
    ['%YAML 1.1\n---\na: yes\n', 'f.yaml:1:1: found %YAML 1.1, expected no directive but %YAML 1.2'],
    ['a: !!binary aGk=\n', 'f.yaml:1:4: found "!!binary", expected no tag, or a value of the type its tag names'],
    ['? [1]\n: 2\n', 'f.yaml:1:3: found "[", expected a text as key'],
  ] as const;
  for (const [text, expected] of cases) assert.equal(faultsOf(text), expected, JSON.stringify(text));
});

test('a doubled key leaves a value whose last one counts', () => {
  const { document, faults } = readDocument('a: 1\nb: 2\na: 3\n', 'f.yaml');
  assert.deepEqual(document?.value, { a: 3, b: 2 });
  assert.equal(document.locate('/a').line, 3);
  assert.equal(faults.length, 1);
});

test('bounds hold before anything is built', () => {
  const expectations = [
    ['x'.repeat(limits.documentBytes + 1), 'f.yaml:1:1: found 1048577 bytes, expected at most 1048576 bytes'],
    ['['.repeat(10_000), 'f.yaml:1:33: found deeper nesting, expected at most 32 levels'],
    ['- '.repeat(10_000), 'f.yaml:1:65: found deeper nesting, expected at most 32 levels'],
    ['- 1\n'.repeat(10_001), 'f.yaml:9997:3: found more than that, expected at most 20000 keys, values and items'],
  ] as const;
  for (const [text, expected] of expectations) assert.equal(faultsOf(text), expected, text.slice(0, 4));
});

test('aliases are bounded in number and in what they multiply to', () => {
  const many = `a: &a [1]\n${Array.from({ length: 101 }, (_, index) => `k${index}: *a\n`).join('')}`;
  assert.equal(faultsOf(many), 'f.yaml:102:7: found one alias more, expected at most 100 aliases');
  const tenfold = (name: string, of: string): string => `${name}: &${name} [${Array(10).fill(of).join(', ')}]\n`;
  const multiplied = tenfold('a', '1') + tenfold('b', '*a') + tenfold('c', '*b') + tenfold('d', '*c');
  assert.equal(
    faultsOf(multiplied),
    'f.yaml:1:1: found aliases that repeat more than they are, expected fewer aliases',
  );
});

test('a text that is no YAML at all gives a bounded number of faults', () => {
  assert.equal(readDocument('"'.repeat(5000), 'f.yaml').faults.length, limits.syntaxFaults);
});
