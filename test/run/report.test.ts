import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closingLine, fileLines } from './report.ts';

test('the closing line is the one that machines read', () => {
  assert.equal(closingLine({ passed: 12, failed: 0, skipped: 0 }), '12 passed, 0 failed');
  assert.equal(closingLine({ passed: 12, failed: 1, skipped: 2 }), '12 passed, 1 failed, 2 skipped');
});

test('a passing file is one line, whatever it wrote', () => {
  const outcome = { passed: 3, failed: [], skipped: [], diagnostics: [], output: 'noise', durationMs: 1234 };
  assert.deepEqual(fileLines('agent/a.test.ts', outcome), ['  ok    agent/a.test.ts  3 passed  1.2 s']);
});
