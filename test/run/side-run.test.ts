import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sideRun } from './side-run.ts';

test('the lines of a runner beside this one are told, its totals are added', () => {
  const said =
    'hosts: real hosts\n  ok    a  3 passed  1.0 s\nhosts: 1.0 s, 3 passed, 0 failed\n\n3 passed, 1 failed, 2 skipped\n';
  assert.deepEqual(sideRun(said, 1), {
    lines: ['hosts: real hosts', '  ok    a  3 passed  1.0 s', 'hosts: 1.0 s, 3 passed, 0 failed'],
    totals: { passed: 3, failed: 1, skipped: 2 },
  });
});

test('a runner that did not come to its end has failed', () => {
  const { lines, totals } = sideRun('hosts: real hosts\n', null);
  assert.equal(totals.failed, 1);
  assert.match(lines.at(-1) ?? '', /FAIL .* status null/);
});
