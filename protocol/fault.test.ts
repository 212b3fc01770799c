import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faultsError, faultsText, orderedFaults, shownValue, type Fault } from './fault.ts';

const fault = (line: number, column: number, path: string): Fault => ({
  file: 'a.yaml',
  line,
  column,
  path,
  found: '3',
  expected: 'a name',
});

test('a fault is one line, with its path where it has one', () => {
  assert.equal(
    faultsText([fault(2, 5, '/x'), fault(1, 1, '')]),
    'a.yaml:2:5 /x: found 3, expected a name\na.yaml:1:1: found 3, expected a name',
  );
});

test('faults come by line and column, each once', () => {
  const ordered = orderedFaults([fault(10, 1, '/c'), fault(2, 9, '/b'), fault(2, 5, '/a'), fault(2, 9, '/b')]);
  assert.deepEqual(
    ordered.map(({ path }) => path),
    ['/a', '/b', '/c'],
  );
});

test('the error holds every fault, a line each', () => {
  const error = faultsError('PLAN_INVALID', [fault(1, 2, '/a'), fault(3, 4, '/b')]);
  assert.equal(error.rule.exit, 2);
  assert.equal(
    error.message,
    [
      'PLAN_INVALID: The plan is wrong.',
      '  faults: ',
      '    a.yaml:1:2 /a: found 3, expected a name',
      '    a.yaml:3:4 /b: found 3, expected a name',
      '  Correct every line named here; plans/README.md explains the keys.',
    ].join('\n'),
  );
});

test('values are shown short and without doubt', () => {
  assert.equal(shownValue('4'), '"4"');
  assert.equal(shownValue(4), '4');
  assert.equal(shownValue(NaN), 'NaN');
  assert.equal(shownValue(null), 'nothing');
  assert.equal(shownValue([]), 'an empty list');
  assert.equal(shownValue([1, 2]), 'a list of 2');
  assert.equal(shownValue({ a: 1, b: 2 }), 'a mapping of a, b');
  assert.equal(shownValue('x'.repeat(100)), `"${'x'.repeat(59)}…`);
});
