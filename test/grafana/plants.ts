/**
 * Faults that are planted into a test build, as a process loads it: production code has no switches for them. A process that
 * imports `planted.js` first (NODE_OPTIONS) has those that `P4_PLANTS` names.
 */
import type { Mutation } from '../simulation/mutation.ts';

export type Plant = 'journal-walk' | 'slow-decode';

/**
 * Decodes begin at whole ticks of the clock. A ring of two stages draws a token in two ticks then, as one of a large model
 * would, and what else the machine does moves it only where that takes longer than what is left of a tick.
 */
const tickMs = 50;
/** The windows make an hour of some seconds: each record that is appended stands for as many. */
const passes = 25;

export const plants: Readonly<Record<Plant, Mutation>> = {
  'journal-walk': {
    name: 'an append to the journal reads all records that it appended so far',
    file: 'agent/journal/store.js',
    guard: "this.#at('append.before');",
    instead: `this.appended ??= [];
      this.appended.push(...rows);
      let bytes = 0;
      for (let pass = 0; pass < ${passes}; pass += 1)
        for (const row of this.appended) bytes += JSON.stringify(JSON.parse(row)).length;
      this.#at('append.before');`,
  },
  'slow-decode': {
    name: 'a decode waits for the next tick, without using a CPU',
    file: 'stage/engine.js',
    guard: 'const status = library.call.decode(',
    instead: `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${tickMs} - (Date.now() % ${tickMs}));
      const status = library.call.decode(`,
  },
};

/** What a process with these plants has in its environment. */
export const plantedEnvironment = (chosen: readonly Plant[]): NodeJS.ProcessEnv =>
  chosen.length === 0
    ? {}
    : { NODE_OPTIONS: `--import=${new URL('planted.js', import.meta.url).href}`, P4_PLANTS: chosen.join() };
