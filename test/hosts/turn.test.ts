import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Turn } from './turn.ts';

const folder = mkdtempSync(join(tmpdir(), 'p4-turn-'));
after(() => {
  rmSync(folder, { recursive: true });
});

test('one has it at a time, and the next when it is ended', async () => {
  const path = join(folder, 'one.lock');
  const order: string[] = [];
  const first = await Turn.take(path);
  const second = Turn.take(path).then(async (turn) => {
    order.push('second begins');
    await turn.end();
  });
  await delay(100);
  order.push('first ends');
  await first.end();
  await second;
  assert.deepEqual(order, ['first ends', 'second begins']);
});

test('the turn of a process that is killed is over', async () => {
  const path = join(folder, 'killed.lock');
  const script = `const { Turn } = await import('${join(import.meta.dirname, 'turn.js')}');
    await Turn.take('${path}'); process.stdout.write('taken'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await (await Turn.take(path)).end();
});

test('a place where no lock can be is an error', async () => {
  await assert.rejects(Turn.take(join(folder, 'nowhere/x.lock')), /nobody can wait/);
});
