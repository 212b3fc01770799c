/**
 * A process of its own for one mutation: its name, the first seed, how many, and how many failures are enough; prints the
 * failures as JSON. A world that runs without end has it killed.
 */
import { register } from 'node:module';
import { Worker } from 'node:worker_threads';
import { present } from '../../protocol/assert.ts';
import { mutations } from './mutations.ts';

/** A world takes some 50 milliseconds. */
const endlessMs = 60_000;

const [name, from, count, enough] = process.argv.slice(2);
const mutation = present(
  mutations.find((one) => one.name === name),
  `there is a mutation ${name ?? ''}`,
);
register('./mutation-hooks.js', { parentURL: import.meta.url, data: [mutation] });
const begun = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
const watch = new Worker(
  `const { workerData: begun } = require('node:worker_threads');
   let last = -1;
   setInterval(() => {
     if (begun[0] === last) process.kill(process.pid, 'SIGKILL');
     last = begun[0];
   }, ${endlessMs});`,
  { eval: true, workerData: begun },
);
const { runSeeds } = await import('./seed-runs.ts');
let failures = 0;
const found = runSeeds({
  ...{ from: Number(from), count: Number(count) },
  began: () => Atomics.add(begun, 0, 1),
  failed: () => (++failures < Number(enough) ? 'go-on' : 'stop'),
});
await watch.terminate();
process.stdout.write(JSON.stringify(found));
