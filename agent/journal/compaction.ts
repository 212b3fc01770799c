/**
 * Compaction: takes what has had its time out of the journal, slice by slice (J4).
 *
 * Commits run between two slices; within one they wait no longer than for some records to be read, or deleted. Room that
 * became free is used by what is written next, and what is more than that goes back to the disk, in slices as well.
 */
import { setImmediate, setTimeout as pause } from 'node:timers/promises';

import { limits } from '../../protocol/limits.ts';
import { recordBytes, type Ledger } from './ledger.ts';
import type { OpenedJournal } from './opening.ts';
import type { Row } from './record-codec.ts';
import { readSlice, type RowSlice } from './record-pages.ts';
import { expiredSweeps, type RetentionTime, type Sweep } from './retention.ts';
import type { Store } from './store.ts';

/** What compaction needs of the journal whose records it takes. */
export interface CompactedJournal {
  readonly folder: string;
  readonly time: () => RetentionTime;
  /** `null` unless the journal is open. */
  readonly files: () => OpenedJournal | null;
  /** Readers under way: nothing is taken away from under them. */
  readonly readers: () => number;
  /** Does a piece of work between two transactions; its failure is the journal's. `null`: it is not open any more. */
  readonly between: <Value>(work: (files: OpenedJournal) => Promise<Value>) => Promise<Value | null>;
  /** Deletes records in such a piece of work, and counts them no more. */
  readonly remove: (store: Store, taken: Taken) => Promise<void>;
  /** Told how long a run took, in milliseconds. */
  readonly took: (ms: number) => void;
  /** Number of the database's free pages. */
  readonly freePages: () => number;
  readonly vacuum: (store: Store, pages: number) => Promise<void>;
}

/** Records of one load that go. */
export interface Taken {
  readonly load: number;
  readonly numbers: readonly number[];
  readonly bytes: number;
  /** Whether nothing of the load is left. */
  readonly isWhole: boolean;
}

export class Compaction {
  readonly #journal: CompactedJournal;
  #running: Promise<void> | null = null;
  #isEnding = false;

  constructor(journal: CompactedJournal) {
    this.#journal = journal;
  }

  /** Resolves when all that has had its time has gone, or the journal is not open any more. One runs at a time. */
  run(): Promise<void> {
    const startMs = performance.now();
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
      this.#journal.took(performance.now() - startMs);
    });
    return this.#running;
  }

  /** Ends after the slice that is under way. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    const ledger = this.#journal.files()?.ledger;
    if (ledger === undefined) return;
    const sweeps = expiredSweeps(ledger, this.#journal.time());
    while (await this.#readersGone()) {
      const sweep = this.#isOf(ledger) ? sweeps.next() : { done: true as const };
      if (sweep.done === true) break;
      await setImmediate();
      await (sweep.value.kind === 'load' ? this.#takeLoad(ledger, sweep.value) : this.#sweep(ledger, sweep.value));
    }
    await this.#giveBack(ledger);
  }

  async #sweep(ledger: Ledger, { load, ranges, takes }: Extract<Sweep, { kind: 'ranges' }>): Promise<void> {
    for (const { from, to } of ranges) {
      let after = from - 1;
      while (after < to) {
        const slice = await this.#slice(ledger, ({ store }) => this.#read(store, { after, through: to }));
        if (slice === null) return;
        after = slice.through;
        const rows = slice.rows.filter(takes);
        if (rows.length > 0)
          await this.#slice(ledger, ({ store }) => this.#journal.remove(store, takenOf(load, rows, false)));
        await pause(limits.journalSlicePauseMs);
      }
    }
  }

  /** Both records in one transaction. */
  async #takeLoad(ledger: Ledger, { load, ended }: Extract<Sweep, { kind: 'load' }>): Promise<void> {
    await this.#slice(ledger, async ({ store }) => {
      const rows: Row[] = [];
      for (const number of [load, ended])
        rows.push(...(await this.#read(store, { after: number - 1, through: number })).rows);
      await this.#journal.remove(store, takenOf(load, rows, true));
    });
  }

  #read(store: Store, range: { readonly after: number; readonly through: number }): Promise<RowSlice> {
    const source = {
      folder: this.#journal.folder,
      page: (after: number, through: number) => store.page(after, through, limits.journalSliceRecords),
      body: (number: number) => store.body(number),
    };
    return readSlice(source, range);
  }

  async #giveBack(ledger: Ledger): Promise<void> {
    while (this.#isOf(ledger) && this.#journal.freePages() > limits.journalFreePages) {
      const before = this.#journal.freePages();
      await this.#slice(ledger, ({ store }) => this.#journal.vacuum(store, limits.journalVacuumPages));
      if (this.#journal.freePages() >= before) return;
      await pause(limits.journalSlicePauseMs);
    }
  }

  /** `null` when compaction is to end: the journal is closed, or what was opened again knows all anew. */
  #slice<Value>(ledger: Ledger, work: (files: OpenedJournal) => Promise<Value>): Promise<Value | null> {
    return this.#isOf(ledger) ? this.#journal.between(work) : Promise.resolve(null);
  }

  #isOf(ledger: Ledger): boolean {
    return !this.#isEnding && this.#journal.files()?.ledger === ledger;
  }

  /** Whether nobody reads; waits for it a while. */
  async #readersGone(): Promise<boolean> {
    for (let tries = limits.journalReadersMs / limits.journalSlicePauseMs; tries > 0; tries--) {
      if (this.#journal.readers() === 0) return true;
      if (this.#isEnding) return false;
      await pause(limits.journalSlicePauseMs);
    }
    return false;
  }
}

function takenOf(load: number, rows: readonly Row[], isWhole: boolean): Taken {
  return {
    load,
    isWhole,
    numbers: rows.map(({ number }) => number),
    bytes: rows.reduce((sum, row) => sum + recordBytes(row), 0),
  };
}
