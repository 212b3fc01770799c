/**
 * Group commit: while one transaction is on its way to the disk, later commits gather and go with the next. Commits that
 * may wait also gather for some time after the last transaction began: what each transaction costs is then shared by all
 * that came in that time. One that may not takes them along at once.
 *
 * Commits are durable strictly in the order in which they were added, and their promises resolve in it. After a failed
 * transaction nothing goes any more: all that wait are rejected with it.
 */
import { performance } from 'node:perf_hooks';

import { assert } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';

/** The rows of one or more commits, in order; one transaction. */
export interface Batch {
  readonly rows: readonly string[];
  /** Sum of the records' sizes as the journal counts them. */
  readonly bytes: number;
}

export interface Commit extends Batch {
  /** Whether nobody minds if it is durable a little later. */
  readonly mayWait: boolean;
}

export interface CommitQueueOptions {
  /** Runs one transaction; it resolves when the batch is durable, and is never called while it runs. */
  readonly write: (batch: Batch) => Promise<void>;
  /** From the begin of one transaction to that of the next, in milliseconds, as long as all that waits may wait. */
  readonly gatherMs: number;
}

interface Waiting extends Commit {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class CommitQueue {
  readonly #options: CommitQueueOptions;
  #waiting: Waiting[] = [];
  #waitingRows = 0;
  #isRunning = false;
  #begunMs = -Infinity;
  /** Runs what gathers. */
  #timer: NodeJS.Timeout | null = null;

  constructor(options: CommitQueueOptions) {
    this.#options = options;
  }

  /** Rows that are not durable yet, those on their way included. */
  get waitingRows(): number {
    return this.#waitingRows;
  }

  /** Resolves when the rows are durable, and all that were added before them. */
  add(commit: Commit): Promise<void> {
    this.#waitingRows += commit.rows.length;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...commit, resolve, reject });
      if (!this.#isRunning) this.#plan();
    });
  }

  /** When the next transaction begins: now, or when the time to gather is over. */
  #plan(): void {
    const restMs = this.#restMs();
    if (restMs > 0) {
      this.#timer ??= setTimeout(() => {
        this.#timer = null;
        this.#begin();
      }, restMs);
      return;
    }
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#begin();
  }

  /** Until what waits should go; at most 0 for at once. */
  #restMs(): number {
    const isFull = this.#waitingRows >= limits.journalBatchRecords;
    if (isFull || this.#waiting.some(({ mayWait }) => !mayWait)) return 0;
    return this.#begunMs + this.#options.gatherMs - performance.now();
  }

  #begin(): void {
    this.#isRunning = true;
    // What else is committed in the same turn of the event loop goes along.
    queueMicrotask(() => void this.#run());
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0 && this.#restMs() <= 0) {
      this.#begunMs = performance.now();
      const commits = this.#takeBatch();
      try {
        await this.#options.write({
          rows: commits.flatMap(({ rows }) => rows),
          bytes: sumOf(commits, ({ bytes }) => bytes),
        });
      } catch (error) {
        this.#rejectAll([...commits, ...this.#waiting.splice(0)], error);
        break;
      }
      this.#waitingRows -= sumOf(commits, ({ rows }) => rows.length);
      for (const { resolve } of commits) resolve();
    }
    this.#isRunning = false;
    if (this.#waiting.length > 0) this.#plan();
  }

  /** Whole commits from the front: as many as fit one transaction, at least one. */
  #takeBatch(): readonly Waiting[] {
    let count = 0;
    let rows = 0;
    let bytes = 0;
    for (const commit of this.#waiting) {
      rows += commit.rows.length;
      bytes += commit.bytes;
      if (count > 0 && (rows > limits.journalBatchRecords || bytes > limits.journalBatchBytes)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  #rejectAll(commits: readonly Waiting[], error: unknown): void {
    this.#waitingRows = 0;
    assert(this.#waiting.length === 0, 'no commit stays behind a failed one');
    for (const { reject } of commits) reject(error);
  }
}

function sumOf<Element>(elements: readonly Element[], value: (element: Element) => number): number {
  return elements.reduce((sum, element) => sum + value(element), 0);
}
