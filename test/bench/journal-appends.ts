/** Appends to bare journals, each held by a process of its own: a full one and an empty one, on disk and in memory. */
import type { ChildProcess } from 'node:child_process';
import { copyFile, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';

import { assert, present } from '../../protocol/assert.ts';
import { unlessAborted } from '../../provisioner/interrupt.ts';
import { openJournal } from '../../agent/journal/journal.ts';
import { markFileName } from '../../agent/journal/mark.ts';
import { loadAdmitted } from '../../agent/journal/sample-records.ts';
import { databaseFileName } from '../../agent/journal/store.ts';
import { forkChild, nextAnswer } from './bench-child.ts';
import type { AppendAnswer, AppendOrder, AppendTimes } from './journal-append-messages.ts';
import { journalLimitBytes } from './journal-filling.ts';
import type { JournalArm, MeasuredAppends } from './journal-measurement.ts';
import { turnsOf } from './rounds.ts';

export interface AppendsOrder {
  /** A full journal that is closed, and how many finished records it holds; it is copied. */
  readonly full: { readonly folder: string; readonly arm: JournalArm };
  readonly diskFolder: string;
  readonly memoryFolder: string;
  readonly rounds: number;
  /** Records that each takes in a round. */
  readonly appends: number;
  readonly signal: AbortSignal;
  /** Told of each round; of 0 while those run that are not counted. */
  readonly said: (round: number) => void;
}

/**
 * Rounds that are not counted. A full journal has been read through when it was opened, and has its code compiled by then;
 * an empty one has to come to that by appending.
 */
const warmUpRounds = 10;
/** Records that a journal takes before it is the next one's turn: what else the disk has to do lasts longer. */
const stretchAppends = 20;

/** Four of them, empty and full on disk, then in memory. */
export async function measureAppends(order: AppendsOrder): Promise<readonly MeasuredAppends[]> {
  const { rounds, appends, signal } = order;
  const held: AppendingProcess[] = [];
  try {
    for (const isOnDisk of [true, false]) {
      for (const records of [0, order.full.arm.records])
        held.push(await AppendingProcess.open(await makeJournal(order, { isOnDisk, records }), signal));
    }
    const measured = held.map((): AppendTimes[] => []);
    for (let round = 1 - warmUpRounds; round <= rounds; round += 1) {
      order.said(Math.max(0, round));
      const found = await appendInTurns(held, { appends, round: round + warmUpRounds });
      if (round > 0) for (const [index, times] of found.entries()) measured[index]?.push(times);
    }
    return held.map(({ arm, held: counted }, index) => {
      const rounds = measured[index] ?? [];
      return {
        ...{ arm, held: counted },
        appendsPerSecond: rounds.map(({ ms }) => (appends * 1000) / ms),
        cpuMs: rounds.map(({ cpuMs }) => cpuMs / appends),
      };
    });
  } finally {
    await Promise.all(held.map((each) => each.close()));
  }
}

/** Journals append in turn, a few records at a stretch. */
async function appendInTurns(
  held: readonly AppendingProcess[],
  { appends, round }: { readonly appends: number; readonly round: number },
): Promise<readonly AppendTimes[]> {
  const times = held.map((): AppendTimes => ({ ms: 0, cpuMs: 0 }));
  let stretch = round * Math.ceil(appends / stretchAppends);
  for (let done = 0; done < appends; done += stretchAppends, stretch += 1) {
    for (const at of turnsOf(held.length, stretch)) {
      const journal = present(held[at], 'an index is that of a journal');
      const { ms, cpuMs } = await journal.append(Math.min(stretchAppends, appends - done));
      const before = present(times[at], 'an index is that of a journal');
      times[at] = { ms: before.ms + ms, cpuMs: before.cpuMs + cpuMs };
    }
  }
  return times;
}

interface MadeJournal {
  readonly arm: JournalArm;
  readonly folder: string;
}

async function makeJournal(
  { full, diskFolder, memoryFolder }: AppendsOrder,
  { isOnDisk, records }: { readonly isOnDisk: boolean; readonly records: number },
): Promise<MadeJournal> {
  const name = `${records === 0 ? 'empty' : full.arm.name}${isOnDisk ? '' : ', in memory'}`;
  const folder = join(isOnDisk ? diskFolder : memoryFolder, records === 0 ? 'appends-empty' : 'appends-full');
  await mkdir(folder, { mode: 0o700 });
  if (records > 0) {
    for (const file of [databaseFileName, markFileName]) await copyDurably(join(full.folder, file), join(folder, file));
  } else {
    const journal = await openJournal({ folder, limitBytes: journalLimitBytes });
    await journal.commit([loadAdmitted()]);
    await journal.close();
  }
  return { arm: { name, records, isOnDisk }, folder };
}

/** Nothing of the copy is on its way to the disk any more when this returns: it would be in the way of what is measured. */
async function copyDurably(from: string, to: string): Promise<void> {
  await copyFile(from, to);
  const file = await open(to, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

class AppendingProcess {
  readonly arm: JournalArm;
  readonly #child: ChildProcess;
  readonly #signal: AbortSignal;
  readonly #before: number;
  #after: number;

  private constructor(arm: JournalArm, parts: { child: ChildProcess; signal: AbortSignal; records: number }) {
    this.arm = arm;
    this.#child = parts.child;
    this.#signal = parts.signal;
    this.#before = this.#after = parts.records;
  }

  static async open({ arm, folder }: MadeJournal, signal: AbortSignal): Promise<AppendingProcess> {
    const child = forkChild({ main: join(import.meta.dirname, 'journal-append-process.js'), words: [folder] });
    try {
      const opened = await unlessAborted(answerOf(child), signal);
      assert(opened.kind === 'opened', 'it says first that its journal is open');
      return new AppendingProcess(arm, { child, signal, records: opened.records });
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
  }

  get held(): MeasuredAppends['held'] {
    return { before: this.#before, after: this.#after };
  }

  async append(count: number): Promise<AppendTimes> {
    const answer = answerOf(this.#child);
    this.#tell({ kind: 'append', count });
    const appended = await unlessAborted(answer, this.#signal);
    assert(appended.kind === 'appended', 'one order at a time: what comes answers the one that was sent');
    this.#after = appended.records;
    return appended;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#tell({ kind: 'close' });
    await exit;
  }

  #tell(order: AppendOrder): void {
    this.#child.send(order);
  }
}

const answerOf = (child: ChildProcess): Promise<AppendAnswer> =>
  nextAnswer<AppendAnswer>(child, 'journal that is appended to');
