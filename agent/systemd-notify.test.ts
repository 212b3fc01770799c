import assert from 'node:assert/strict';
import { test } from 'node:test';

import { limits } from '../protocol/limits.ts';
import { notifyPeriodMs, openNotifier, watchdogPeriodMs } from './systemd-notify.ts';

test('the watchdog’s period is that of this process, or none', () => {
  assert.equal(watchdogPeriodMs({ WATCHDOG_USEC: '30000000' }, 7), 30_000);
  assert.equal(watchdogPeriodMs({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '7' }, 7), 30_000);
  assert.equal(watchdogPeriodMs({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '8' }, 7), null);
  for (const period of ['', '0', '-1', 'x']) assert.equal(watchdogPeriodMs({ WATCHDOG_USEC: period }, 7), null);
  assert.equal(watchdogPeriodMs({}, 7), null);
});

test('a watchdog hears at least twice in its period', () => {
  assert.equal(notifyPeriodMs(4_000), 2_000);
  assert.equal(notifyPeriodMs(600_000), limits.serviceStatusMs);
  assert.equal(notifyPeriodMs(null), limits.serviceStatusMs);
});

test('nothing is said, and nothing logged, where no service manager listens', () => {
  const lines: unknown[] = [];
  const notifier = openNotifier({}, (line) => lines.push(line));
  notifier.ready(() => assert.fail('nobody wants a status'));
  notifier.stopping();
  assert.deepEqual(lines, []);
});
