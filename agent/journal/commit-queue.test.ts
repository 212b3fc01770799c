import assert from 'node:assert/strict';
import { test } from 'node:test';

import { limits } from '../../protocol/limits.ts';
import { CommitQueue, type Batch } from './commit-queue.ts';

interface Gate {
  readonly open: () => void;
  readonly fail: (error: unknown) => void;
}

/** A queue whose transactions end when the test says so. */
function gatedQueue(): { queue: CommitQueue; batches: Batch[]; gates: Gate[] } {
  const batches: Batch[] = [];
  const gates: Gate[] = [];
  const queue = new CommitQueue((batch) => {
    batches.push(batch);
    return new Promise((open, fail) => gates.push({ open, fail }));
  });
  return { queue, batches, gates };
}

const commit = (queue: CommitQueue, ...rows: string[]): Promise<void> => queue.add({ rows, bytes: rows.length });

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
