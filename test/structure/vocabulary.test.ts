import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { errorCodes } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { houseFiles, tell, typescriptFiles } from './house-files.ts';
import {
  listedInvariants,
  poorlySaid,
  unknownCitations,
  unreasonedLimits,
  unusedCodes,
  unusedLimits,
} from './vocabulary.ts';

const files = houseFiles();
const sources = typescriptFiles(files);

function fileAt(path: string): { readonly path: string; readonly text: string } {
  const found = files.find((file) => file.path === path);
  assert.ok(found !== undefined, `${path} is there`);
  return found;
}

suite('the vocabulary of this checkout', () => {
  test('has no error code that nothing raises or handles', () => {
    assert.deepEqual(unusedCodes(Object.keys(errorCodes), sources).map(tell), []);
  });

  test('tells every error in sentences of its own', () => {
    assert.deepEqual(poorlySaid(errorCodes).map(tell), []);
  });

  test('has no limit that bounds nothing', () => {
    assert.deepEqual(unusedLimits(Object.keys(limits), sources).map(tell), []);
  });

  test('gives a reason for every limit', () => {
    assert.deepEqual(unreasonedLimits(fileAt('protocol/limits.ts')).map(tell), []);
  });

  test('cites invariants that ARCHITECTURE.md lists', () => {
    const listed = listedInvariants(fileAt('ARCHITECTURE.md'));
    for (const code of ['G1', 'J1', 'E1', 'S1', 'X1', 'A1', 'R1']) assert.ok(listed.has(code), `${code} is listed`);
    const citing = sources.filter(({ path }) => path !== 'test/structure/vocabulary.test.ts');
    assert.deepEqual(unknownCitations(citing, listed).map(tell), []);
  });
});

suite('vocabulary rules see', () => {
  const at = (path: string, text: string): { path: string; text: string } => ({ path, text });

  test('an error code that is named nowhere, or only in the table and in tests', () => {
    const table = at('protocol/errors.ts', "export const errorCodes = { LOST: 1, FOUND: 2 }; isErrorCode('LOST');");
    const rows = at('protocol/error-codes.ts', 'export const stageErrors = { LOST: 1 };');
    const raising = at('agent/a.ts', "throw new P4Error('FOUND');");
    const asserting = at('agent/a.test.ts', "assert.equal(error.code, 'LOST');");
    assert.deepEqual(unusedCodes(['LOST', 'FOUND'], [table, rows, raising, asserting]).map(tell), [
      'protocol/errors.ts: LOST is used nowhere',
    ]);
    assert.deepEqual(unusedCodes(['LOST'], [at('agent/a.ts', 'const table = { LOST: retry };')]), []);
  });

  test('an error that is not told in sentences, and two that are told alike', () => {
    const good = { says: 'The plan names no host.', remedy: 'Name a host in the plan.' };
    assert.deepEqual(poorlySaid({ A: good, B: { says: 'bad', remedy: '' } }).map(tell), [
      'protocol/errors.ts: B does not say in a sentence what happened',
      'protocol/errors.ts: B does not say in a sentence what to do',
    ]);
    assert.equal(poorlySaid({ A: good, B: { ...good, remedy: 'Something else entirely.' } }).length, 2);
    assert.deepEqual(poorlySaid({ A: good }), []);
  });

  test('a limit that bounds nothing', () => {
    const reading = at('agent/a.ts', 'if (rows > limits.rows) refuse(other.bytes);');
    assert.deepEqual(unusedLimits(['rows', 'bytes'], [reading]).map(tell), [
      'protocol/limits.ts: limits.bytes is used nowhere',
    ]);
    assert.equal(unusedLimits(['rows'], [at('protocol/limits.ts', 'limits.rows')]).length, 1);
  });

  test('a limit without a reason', () => {
    const text =
      'const bounds = {\n/** Why. */\npageRows: 1,\npageBytes: 2,\nlinks: 3,\n};\nconst other = { free: 4 };';
    assert.deepEqual(unreasonedLimits(at('protocol/limits.ts', text)).map(tell), [
      'protocol/limits.ts:5: links gives no reason',
    ]);
  });

  test('a citation of an invariant that is not listed', () => {
    const listed = listedInvariants(at('ARCHITECTURE.md', '- **G1** one\n- **J2**: two, see G9'));
    assert.deepEqual([...listed], ['G1', 'J2']);
    const citing = [
      at('agent/a.ts', '// G1, J2\n// J3: no\nconst Q8 = 0xe5;'),
      at('agent/a.test.ts', "test('G2', f);"),
    ];
    assert.deepEqual(unknownCitations(citing, listed).map(tell), [
      'agent/a.ts:2: cites J3, which ARCHITECTURE.md does not list',
      'agent/a.test.ts:1: cites G2, which ARCHITECTURE.md does not list',
    ]);
  });
});
