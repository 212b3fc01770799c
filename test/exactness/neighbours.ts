/** Sessions that run beside the one that is looked at: prompts of all lengths, answered and begun again, from a seed. */
import { randomBits } from '../../model/random-weights.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { LoadedRing } from '../fixture/local-rings.ts';
import { randomTokens } from './script.ts';

/** Time for every neighbour's first token. */
const startMs = 60_000;

/** Runs `work` while so many other sessions of the ring keep it busy. */
export async function besideNeighbours<Result>(
  ring: LoadedRing,
  { count, seed }: { readonly count: number; readonly seed: number },
  work: () => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController();
  const running = Array.from({ length: count }, (_, index) => new Neighbour(ring, seed * 100 + index, stop.signal));
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

  constructor(ring: LoadedRing, seed: number, signal: AbortSignal) {
    let answered = (): void => undefined;
    this.answers = new Promise((resolve) => {
      answered = resolve;
    });
    this.ended = keepAsking({ ring, seed, signal, answered });
  }
}

interface Asking {
  readonly ring: LoadedRing;
  readonly seed: number;
  readonly signal: AbortSignal;
  readonly answered: () => void;
}

async function keepAsking({ ring, seed, signal, answered }: Asking): Promise<void> {
  const next = randomBits(seed, 1);
  try {
    for (;;) {
      signal.throwIfAborted();
      const prompt = randomTokens(next(), 1 + (next() % 100), 1000);
      const sampling = { seed: next(), temperature: 1 };
      await ring.ask({ prompt, sampling, maxTokens: 4 + (next() % 40), signal, onToken: answered });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
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
