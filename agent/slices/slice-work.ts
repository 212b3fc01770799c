/** Runs slice tasks in worker threads, a few at a time: hashing a model must not delay a token. */
import { Worker } from 'node:worker_threads';

import { assert } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { stopWord, type SliceTask, type TaskKind, type TaskNews, type TaskResults } from './slice-task.ts';

export interface TaskOptions {
  readonly signal: AbortSignal;
  /** Called now and then. */
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
}

const threadFile = new URL('./slice-thread.js', import.meta.url);

export class SliceWork {
  #running = 0;
  /** Those that wait for a thread, the longest first. */
  readonly #waiting: (() => void)[] = [];

  /** @throws what the task fails with; CANCELLED, or the signal's reason, when it was ended early */
  async run<Kind extends TaskKind>(
    task: Extract<SliceTask, { readonly kind: Kind }>,
    options: TaskOptions,
  ): Promise<TaskResults[Kind]> {
    await this.#turn();
    try {
      options.signal.throwIfAborted();
      const result = await threadResult(task, options);
      assert(result.kind === task.kind, 'a task has the result of its kind');
      // The kinds are equal: the type of the value follows.
      return result.value as TaskResults[Kind];
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }

  async #turn(): Promise<void> {
    while (this.#running >= limits.sliceTasks) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
    this.#running += 1;
  }
}

function threadResult(task: SliceTask, { signal, onProgress }: TaskOptions) {
  return new Promise<Extract<TaskNews, { kind: 'done' }>['result']>((resolve, reject) => {
    const thread = new Worker(threadFile, { workerData: task });
    const stop = (): void => {
      thread.postMessage(stopWord);
    };
    signal.addEventListener('abort', stop, { once: true });
    const end = (settle: () => void): void => {
      signal.removeEventListener('abort', stop);
      settle();
    };
    thread.on('message', (news: TaskNews) => {
      switch (news.kind) {
        case 'progress':
          onProgress?.(news.doneBytes, news.totalBytes);
          return;
        case 'done':
          end(() => {
            resolve(news.result);
          });
          return;
        case 'failed':
          end(() => {
            reject(signal.aborted ? reasonOf(signal) : new P4Error(news.code, news.facts));
          });
          return;
      }
    });
    // What a thread ends of by itself is a bug; after its last word nothing hears of this any more.
    thread.once('error', (error) => {
      end(() => {
        reject(error);
      });
    });
    thread.once('exit', () => {
      end(() => {
        reject(new Error('the thread of a slice task ended without a result'));
      });
    });
  });
}

const reasonOf = (signal: AbortSignal): P4Error =>
  signal.reason instanceof P4Error ? signal.reason : new P4Error('CANCELLED', {}, signal.reason);
