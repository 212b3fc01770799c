/** Somebody who scrapes an agent while the benchmark measures. */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';

import { assert } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { NetAddress } from '../../protocol/net-address.ts';
import { forkChild, nextAnswer } from './bench-child.ts';
import type { ScrapeAnswer, ScrapeOrder } from './scrape-messages.ts';

const childMain = join(import.meta.dirname, 'scrape-process.js');

export class Scraper {
  readonly #child: ChildProcess;
  #scrapes = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static start(): Scraper {
    return new Scraper(forkChild({ main: childMain }));
  }

  /** Answers that it has had so far. */
  get scrapes(): number {
    return this.#scrapes;
  }

  /**
   * Scrapes once in so many milliseconds while the work is done.
   * @throws RPC_FAILED where the agent did not show its metrics
   */
  async during<Result>(
    { target, everyMs }: { readonly target: NetAddress; readonly everyMs: number },
    work: () => Promise<Result>,
  ): Promise<Result> {
    await this.#ask({ kind: 'scrape', target, everyMs });
    const result = await work();
    const answer = await this.#ask({ kind: 'stop' });
    assert(answer.kind === 'stopped', 'the answer is that to the order');
    if (answer.failures > 0) throw new P4Error('RPC_FAILED', { method: 'GET /metrics', found: answer.failures });
    this.#scrapes += answer.scrapes;
    return result;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await exit;
  }

  #ask(order: ScrapeOrder): Promise<ScrapeAnswer> {
    const answered = nextAnswer<ScrapeAnswer>(this.#child, 'scraper');
    this.#child.send(order);
    return answered;
  }
}
