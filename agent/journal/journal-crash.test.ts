import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { openJournal } from './journal.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';

const program = fileURLToPath(new URL('./committing-process.js', import.meta.url));
const deadlineMs = 60_000;
const limitBytes = limits.journalLeastBytes;

interface Committing {
  readonly process: ChildProcess;
  /** Indexes of tokens whose commit was acknowledged. */
  readonly acknowledged: number[];
  readonly exited: Promise<unknown>;
}

function committingProcess(t: TestContext, folder: string): Committing {
  const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  const acknowledged: number[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => acknowledged.push(Number(line)));
  t.after(() => child.kill('SIGKILL'));
  // `close` comes when the pipe has been read to its end.
  return { process: child, acknowledged, exited: once(child, 'close') };
}

async function acknowledgedCount({ acknowledged, process: child }: Committing, count: number): Promise<void> {
  const signal = AbortSignal.timeout(deadlineMs);
  while (acknowledged.length < count) {
    assert.equal(child.exitCode, null, 'the committing process runs');
    signal.throwIfAborted();
    await new Promise(setImmediate);
  }
}

async function tokensIn(folder: string): Promise<number[]> {
  const journal = await openJournal({ folder, limitBytes });
  const indexes: number[] = [];
  for await (const record of journal.replay()) if (record.kind === 'token-emitted') indexes.push(record.index);
  await journal.close();
  return indexes;
}

test('J7, J8: whatever was acknowledged is there after kill -9, in order and without a gap', async (t) => {
  const folder = temporaryFolder(t);
  let known = 0;
  for (const more of [1, 40, 200]) {
    const committing = committingProcess(t, folder);
    await acknowledgedCount(committing, more);
    committing.process.kill('SIGKILL');
    await committing.exited;
    const acknowledged = Math.max(...committing.acknowledged) + 1;
    assert.ok(acknowledged >= known + more);
    const indexes = await tokensIn(folder);
    assert.deepEqual(
      indexes,
      indexes.map((_, position) => position),
    );
    assert.ok(indexes.length >= acknowledged, `${indexes.length} tokens of ${acknowledged} acknowledged`);
    known = indexes.length;
  }
});

test('J5: a second holder is refused with folder and pid of the first; kill -9 frees the journal', async (t) => {
  const folder = temporaryFolder(t);
  const first = committingProcess(t, folder);
  await acknowledgedCount(first, 1);
  await assert.rejects(openJournal({ folder, limitBytes }), (error) => {
    assert.ok(error instanceof P4Error);
    assert.equal(error.code, 'JOURNAL_LOCKED');
    assert.deepEqual(error.facts, { folder, pid: first.process.pid });
    return true;
  });
  const before = first.acknowledged.length;
  await acknowledgedCount(first, before + 10);
  first.process.kill('SIGKILL');
  await first.exited;
  const journal = await openJournal({ folder, limitBytes });
  await assert.rejects(openJournal({ folder, limitBytes }), /JOURNAL_LOCKED/, 'within one process, too');
  await journal.close();
  await (await openJournal({ folder, limitBytes })).close();
});

test('J6: a WAL that lost its end after a crash is refused, wherever it is cut, and gone altogether', async (t) => {
  const folder = temporaryFolder(t);
  const committing = committingProcess(t, folder);
  await acknowledgedCount(committing, 120);
  committing.process.kill('SIGKILL');
  await committing.exited;
  const files = ['journal.sqlite', 'journal.sqlite-wal', 'journal.mark'].map(
    (name) => [name, readFileSync(join(folder, name))] as const,
  );
  const [, wal] = files[1] ?? [];
  // Three commits share a transaction at most, and a transaction writes at least the page of its rows.
  const frames = 40;
  assert.ok(wal !== undefined && wal.length >= walHeaderBytes + frames * frameBytes);
  const crashed = (changed: Buffer | null): string => {
    const copy = join(temporaryFolder(t), 'journal');
    mkdirSync(copy);
    for (const [name, bytes] of files) {
      const written = name === 'journal.sqlite-wal' ? changed : bytes;
      if (written !== null) writeFileSync(join(copy, name), written);
    }
    return copy;
  };
  assert.ok((await tokensIn(crashed(wal))).length >= 120);
  const cuts = [0, 32, ...[1, 10, 39].map(frameStart)].map((length) => wal.subarray(0, length));
  const flips = [8, 40, ...[5, 20, 38].map((frame) => frameStart(frame) + 2000)].map((byte) => flipped(wal, byte));
  for (const changed of [null, ...cuts, ...flips])
    await assert.rejects(openJournal({ folder: crashed(changed), limitBytes }), /JOURNAL_CORRUPT/);
});

const walHeaderBytes = 32;
const frameBytes = 24 + 4096;
const frameStart = (frame: number): number => walHeaderBytes + frame * frameBytes;

function flipped(bytes: Buffer, offset: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[offset] = (copy[offset] ?? 0) ^ 0x10;
  return copy;
}
