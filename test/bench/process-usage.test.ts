import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { cpuMs, memoryUse } from './process-usage.ts';

suite('process usage', () => {
  test('CPU time grows with work, by about what the process itself counts', () => {
    const startMs = cpuMs(process.pid);
    const own = process.cpuUsage();
    for (let sum = 0; process.cpuUsage(own).user < 200_000; sum += 1) Math.sqrt(sum);
    const { user, system } = process.cpuUsage(own);
    const grownMs = cpuMs(process.pid) - startMs;
    const countedMs = (user + system) / 1000;
    assert.ok(grownMs > countedMs * 0.8 && grownMs < countedMs * 1.2, `${grownMs} ms of ${countedMs} ms`);
  });

  test('memory that is written to is anonymous and resident', () => {
    const before = memoryUse(process.pid);
    const bytes = 64 * 1024 * 1024;
    const block = Buffer.alloc(bytes, 1);
    const after = memoryUse(process.pid);
    assert.equal(block[bytes - 1], 1);
    assert.ok(after.anonymousBytes - before.anonymousBytes > bytes * 0.9);
    assert.ok(after.residentBytes >= after.anonymousBytes);
    assert.ok(before.anonymousBytes > 0);
  });
});
