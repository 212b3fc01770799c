/** One piece of work at a time on the journal's connection: a transaction is never seen half, nor interrupted. */

export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs the work when all that came before has ended, however it ended. */
  take<Value>(work: () => Promise<Value>): Promise<Value> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}
