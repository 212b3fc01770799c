/**
 * Group commit: while one transaction is on its way to the disk, later commits gather and go with the next.
 *
 * Commits are durable strictly in the order in which they were added, and their promises resolve in it. After a failed
 * transaction nothing goes any more: all that wait are rejected with it.
 */
import { assert } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';

/** The rows of one or more commits, in order; one transaction. */
export interface Batch {
  readonly rows: readonly string[];
  /** Sum of the records' sizes as the journal counts them. */
  readonly bytes: number;
}

interface Waiting extends Batch {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class CommitQueue {
  readonly #write: (batch: Batch) => Promise<void>;
  #waiting: Waiting[] = [];
  #waitingRows = 0;
  #isRunning = false;

  /** `write` runs one transaction; it resolves when the batch is durable, and is never called while it runs. */
  constructor(write: (batch: Batch) => Promise<void>) {
    this.#write = write;
  }

  /** Rows that are not durable yet, those on their way included. */
  get waitingRows(): number {
    return this.#waitingRows;
  }

  /** Resolves when the rows are durable, and all that were added before them. */
  add({ rows, bytes }: Batch): Promise<void> {
    this.#waitingRows += rows.length;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ rows, bytes, resolve, reject });
      if (this.#isRunning) return;
      this.#isRunning = true;
      // What else is committed in the same turn of the event loop goes along.
      queueMicrotask(() => void this.#run());
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const commits = this.#takeBatch();
      try {
        await this.#write({ rows: commits.flatMap(({ rows }) => rows), bytes: sumOf(commits, ({ bytes }) => bytes) });
      } catch (error) {
        this.#rejectAll([...commits, ...this.#waiting.splice(0)], error);
        break;
      }
      this.#waitingRows -= sumOf(commits, ({ rows }) => rows.length);
      for (const { resolve } of commits) resolve();
    }
    this.#isRunning = false;
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
