/**
 * Sessions that run beside the one that is looked at: prompts of all lengths, answered or cancelled on their way, and begun
 * again sooner or later, from a seed.
 */
import { setTimeout as pause } from 'node:timers/promises';

import { randomBits, type RandomBits } from '../../model/random-weights.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { LoadedRing } from '../fixture/local-rings.ts';
import { randomTokens } from './script.ts';

/** Time for every neighbour's first token. */
const startMs = 60_000;

export interface NeighboursOrder {
  readonly count: number;
  readonly seed: number;
  /**
   * Some of their requests are cancelled, and what they did is counted. A session that was cancelled is closed a moment
   * after its neighbour has begun anew: the ring needs room for both.
   */
  readonly tally?: NeighbourTally;
}

export interface NeighbourTally {
  answered: number;
  cancelled: number;
}

/** Runs `work` while so many other sessions of the ring keep it busy. */
export async function besideNeighbours<Result>(
  ring: LoadedRing,
  { count, seed, tally }: NeighboursOrder,
  work: () => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController();
  const running = Array.from(
    { length: count },
    (_, index) => new Neighbour({ ring, tally, seed: seed * 100 + index, signal: stop.signal }),
  );
  const ended = Promise.all(running.map(({ ended }) => ended));
  try {
    await Promise.race([Promise.all(running.map(({ answers }) => answers)), ended, deadline(stop.signal)]);
    return await work();
  } finally {
    stop.abort(new P4Error('CANCELLED', { by: 'the test' }));
    await ended;
  }
}

class Neighbour {
  /** Resolves with its first token. */
  readonly answers: Promise<void>;
  /** Resolves when it was told to stop; rejects when its ring fails it. */
  readonly ended: Promise<void>;

  constructor(order: Omit<Asking, 'answered'>) {
    let answered = (): void => undefined;
    this.answers = new Promise((resolve) => {
      answered = resolve;
    });
    this.ended = keepAsking({ ...order, answered });
  }
}

interface Asking {
  readonly ring: LoadedRing;
  readonly seed: number;
  readonly signal: AbortSignal;
  readonly tally: NeighbourTally | undefined;
  readonly answered: () => void;
}

/** Longest time between two requests of a neighbour, and until one is cancelled by the clock. */
const mostPauseMs = 60;

async function keepAsking({ ring, seed, signal, tally, answered }: Asking): Promise<void> {
  const next = randomBits(seed, 1);
  try {
    for (;;) {
      signal.throwIfAborted();
      const prompt = randomTokens(next(), 1 + (next() % 100), 1000);
      const sampling = { seed: next(), temperature: 1 };
      const ending = cancellation(next, tally !== undefined);
      const onToken = (tokens: number): void => {
        answered();
        ending.hear(tokens);
      };
      const own = AbortSignal.any([signal, ending.signal]);
      try {
        await ring.ask({ prompt, sampling, maxTokens: 4 + (next() % 40), signal: own, onToken });
        if (tally !== undefined) tally.answered += 1;
      } catch (error) {
        if (signal.aborted || !ending.signal.aborted || tally === undefined) throw error;
        tally.cancelled += 1;
      } finally {
        ending.clear();
      }
      if (next() % 2 === 0) await pause(next() % mostPauseMs);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

interface Cancellation {
  readonly signal: AbortSignal;
  hear(tokens: number): void;
  clear(): void;
}

/** Every fourth request is cancelled, if any: at some token, or by the clock, in the middle of its prompt maybe. */
function cancellation(next: RandomBits, cancels: boolean): Cancellation {
  const ending = new AbortController();
  const cancel = (): void => {
    ending.abort(new P4Error('CANCELLED', { by: 'the test' }));
  };
  const kind = cancels ? next() % 8 : null;
  const atToken = kind === 0 ? 1 + (next() % 20) : Infinity;
  const timer = kind === 1 ? setTimeout(cancel, next() % mostPauseMs) : undefined;
  return {
    signal: ending.signal,
    hear: (tokens) => {
      if (tokens >= atToken) cancel();
    },
    clear: () => {
      clearTimeout(timer);
    },
  };
}

function deadline(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error('the neighbours have no token yet'));
    }, startMs);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
    });
  });
}
