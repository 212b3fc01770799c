import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { test, type TestContext } from 'node:test';

import { limits } from '../../protocol/limits.ts';
import { CommitQueue, type Batch } from './commit-queue.ts';

interface Gate {
  readonly open: () => void;
  readonly fail: (error: unknown) => void;
}

/** A queue whose transactions end when the test says so. */
function gatedQueue(gatherMs = 0): { queue: CommitQueue; batches: Batch[]; gates: Gate[] } {
  const batches: Batch[] = [];
  const gates: Gate[] = [];
  const write = (batch: Batch): Promise<void> => {
    batches.push(batch);
    return new Promise((open, fail) => gates.push({ open, fail }));
  };
  const queue = new CommitQueue({ write, gatherMs });
  return { queue, batches, gates };
}

const commit = (queue: CommitQueue, ...rows: string[]): Promise<void> =>
  queue.add({ rows, bytes: rows.length, mayWait: false });
const later = (queue: CommitQueue, ...rows: string[]): Promise<void> =>
  queue.add({ rows, bytes: rows.length, mayWait: true });

/** Runs everything that is ready to run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('commits of one turn of the event loop share a transaction; those that come later share the next', async () => {
  const { queue, batches, gates } = gatedQueue();
  const ended: string[] = [];
  const note = (name: string) => () => void ended.push(name);
  const first = [commit(queue, 'a').then(note('a')), commit(queue, 'b', 'c').then(note('bc'))];
  await settle();
  const second = [commit(queue, 'd').then(note('d')), commit(queue, 'e').then(note('e'))];
  await settle();
  assert.deepEqual(batches, [{ rows: ['a', 'b', 'c'], bytes: 3 }]);
  assert.deepEqual(ended, []);
  assert.equal(queue.waitingRows, 5);
  gates[0]?.open();
  await Promise.all(first);
  assert.deepEqual(ended, ['a', 'bc']);
  await settle();
  assert.deepEqual(batches[1], { rows: ['d', 'e'], bytes: 2 });
  gates[1]?.open();
  await Promise.all(second);
  assert.deepEqual(ended, ['a', 'bc', 'd', 'e']);
  assert.equal(queue.waitingRows, 0);
});

test('a failed transaction rejects its commits and all that waited behind it', async () => {
  const { queue, batches, gates } = gatedQueue();
  const first = assert.rejects(commit(queue, 'a'), /disk/);
  await settle();
  const second = assert.rejects(commit(queue, 'b'), /disk/);
  gates[0]?.fail(new Error('disk'));
  await Promise.all([first, second]);
  assert.equal(batches.length, 1);
  assert.equal(queue.waitingRows, 0);
});

test('a transaction takes whole commits, as many as its bounds allow and at least one', async () => {
  const { queue, batches, gates } = gatedQueue();
  const rows = Array<string>(limits.journalBatchRecords).fill('r');
  const commits = [commit(queue, ...rows, 'one more'), commit(queue, 'b'), commit(queue, ...rows)];
  for (const [index] of commits.entries()) {
    await settle();
    gates[index]?.open();
  }
  await Promise.all(commits);
  assert.deepEqual(
    batches.map((batch) => batch.rows.length),
    [rows.length + 1, 1, rows.length],
  );
});

/** With the clock and the timers of the test. */
async function gathering(
  t: TestContext,
): Promise<ReturnType<typeof gatedQueue> & { pass: (ms: number) => Promise<void> }> {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  const gated = gatedQueue(30);
  const pass = async (ms: number): Promise<void> => {
    nowMs += ms;
    t.mock.timers.tick(ms);
    await settle();
  };
  void commit(gated.queue, 'first');
  await settle();
  gated.gates[0]?.open();
  await settle();
  return { ...gated, pass };
}

const rowsOf = (batches: readonly Batch[]): readonly string[] => batches.map(({ rows }) => rows.join(' '));

test('commits that may wait gather from the begin of the last transaction on', async (t) => {
  const { queue, batches, gates, pass } = await gathering(t);
  await pass(10);
  const ended = [later(queue, 'a'), later(queue, 'b')];
  await pass(10);
  ended.push(later(queue, 'c'));
  await pass(9);
  assert.deepEqual(rowsOf(batches), ['first']);
  await pass(1);
  assert.deepEqual(rowsOf(batches), ['first', 'a b c']);
  gates[1]?.open();
  await Promise.all(ended);
  await pass(31);
  void later(queue, 'd');
  await settle();
  assert.deepEqual(rowsOf(batches).slice(2), ['d'], 'after a pause the first one goes at once');
});

test('a commit that may not wait takes along what has gathered', async (t) => {
  const { queue, batches, gates, pass } = await gathering(t);
  void later(queue, 'a');
  await pass(5);
  assert.deepEqual(rowsOf(batches), ['first']);
  void commit(queue, 'b');
  await settle();
  assert.deepEqual(rowsOf(batches).slice(1), ['a b']);
  void later(queue, 'c');
  gates[1]?.open();
  await pass(29);
  assert.equal(batches.length, 2, 'the time to gather begins with a transaction, whatever it was for');
  await pass(1);
  assert.deepEqual(rowsOf(batches).slice(2), ['c']);
});

test('a transaction that takes longer than the time to gather is followed by the next at once', async (t) => {
  const { queue, batches, gates, pass } = await gathering(t);
  void commit(queue, 'a');
  await settle();
  void later(queue, 'b');
  await pass(40);
  assert.deepEqual(rowsOf(batches).slice(1), ['a'], 'one at a time');
  gates[1]?.open();
  await settle();
  assert.deepEqual(rowsOf(batches).slice(2), ['b']);
});
