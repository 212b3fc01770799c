/** What is fed in a proof: prompts in chunks and greedy steps, several sessions at once, as plain values. */
import { assert } from '../../protocol/assert.ts';
import { randomBits } from '../../model/random-weights.ts';
import { exactRows } from '../../stage/shape.ts';

/** Rows of one sequence in one decode: the next of its prompt, or the one of its greedy token. */
export interface Feed {
  readonly sequence: number;
  readonly rows: number | 'greedy';
}

export interface Turn {
  readonly feeds: readonly Feed[];
  /** Rows with logits: every one, or those a token is drawn from, as in a ring. */
  readonly outputs: 'all' | 'drawn';
}

/** Begins with an empty KV cache. Prompts by sequence. */
export interface Script {
  readonly name: string;
  readonly prompts: readonly (readonly number[])[];
  readonly turns: readonly Turn[];
}

/** Token ids from a seed, each one of the vocabulary. */
export function randomTokens(seed: number, count: number, vocabularySize: number): number[] {
  const next = randomBits(seed, 0);
  return Array.from({ length: count }, () => next() % vocabularySize);
}

/** A prompt in chunks of one size (the last one smaller), then tokens one by one. */
export function chunkedScript(prompt: readonly number[], chunkRows: number, steps: number): Script {
  assert(chunkRows <= exactRows.most, 'a chunk is one decode');
  const chunks = Array.from({ length: Math.ceil(prompt.length / chunkRows) }, (_, index) =>
    Math.min(chunkRows, prompt.length - index * chunkRows),
  );
  return {
    name: `${String(prompt.length)} rows in chunks of ${String(chunkRows)}, ${String(steps)} tokens`,
    prompts: [prompt],
    turns: [...chunks.map((rows) => alone(rows)), ...times(steps, () => alone('greedy'))],
  };
}

const alone = (rows: Feed['rows']): Turn => ({ feeds: [{ sequence: 0, rows }], outputs: 'drawn' });

const times = <Value>(count: number, make: (index: number) => Value): Value[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** Chunks of the second prompt of `mixedScript`. */
const mixedChunks = [1, 2, 7, 16, 37] as const;

/**
 * Everything that a ring's decodes look like, in one run of `steps` + 6 decodes or a few more: a prompt at once with the
 * logits of all its rows, lone steps, a second prompt in chunks of every size alone and beside a session that decodes, two
 * sessions that decode together, a third prompt beside both, then lone steps to the end.
 *
 * @param prompts two of 63 rows and one of 21
 */
export function mixedScript(prompts: readonly (readonly number[])[], steps: number): Script {
  const sizes = prompts.map(({ length }) => length);
  assert(sizes.join() === '63,63,21' && steps >= 40, 'three prompts, and enough steps for all of them');
  const first: Feed = { sequence: 0, rows: 'greedy' };
  const second: Feed = { sequence: 1, rows: 'greedy' };
  const beside = mixedChunks.map((rows, index): Turn => {
    const chunk: Feed = { sequence: 1, rows };
    return { feeds: index % 2 === 0 ? [chunk] : [first, chunk], outputs: 'drawn' };
  });
  const turns: Turn[] = [
    { feeds: [{ sequence: 0, rows: 63 }], outputs: 'all' },
    ...times(6, () => alone('greedy')),
    ...beside,
    ...times(16, (index): Turn => ({ feeds: [first, second], outputs: index % 4 === 0 ? 'all' : 'drawn' })),
    { feeds: [first, second, { sequence: 2, rows: 16 }], outputs: 'drawn' },
    { feeds: [second, { sequence: 2, rows: 5 }, first], outputs: 'all' },
    ...times(4, (): Turn => ({ feeds: [{ sequence: 2, rows: 'greedy' }, first, second], outputs: 'drawn' })),
  ];
  const fed = turns.filter(({ feeds }) =>
    feeds.some(({ sequence, rows }) => sequence === 0 && rows === 'greedy'),
  ).length;
  return {
    name: `three prompts in chunks of 63, ${mixedChunks.join(', ')} and 16, ${String(steps)} tokens`,
    prompts,
    turns: [...turns, ...times(steps - fed, () => alone('greedy'))],
  };
}
