/** A process of its own for one mutation: its name, the first seed and how many; prints the failures as JSON. */
import { register } from 'node:module';
import { present } from '../../protocol/assert.ts';
import { mutations } from './mutations.ts';

const [name, from, count] = process.argv.slice(2);
const mutation = present(
  mutations.find((one) => one.name === name),
  `there is a mutation ${name ?? ''}`,
);
register('./mutation-hooks.js', { parentURL: import.meta.url, data: mutation });
const { runSeeds } = await import('./seed-runs.ts');
const failures = runSeeds({ from: Number(from), count: Number(count), failed: () => 'go-on' });
process.stdout.write(JSON.stringify(failures));
