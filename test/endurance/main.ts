/**
 * `npm run prove:long`: 100,000 tokens of the stories model in many sessions, with flat memory, every KV cell back, and a
 * journal that makes room meanwhile. `npm run prove:long -- --tokens 20000` draws fewer.
 */
import { randomInt } from 'node:crypto';

import { wholeNumber } from '../../provisioner/number-option.ts';
import { grown, longRunLines, mostGrowthBytes, runLong } from './long-run.ts';

const args = process.argv.slice(2);
const at = args.indexOf('--tokens');
const tokens = at < 0 ? 100_000 : wholeNumber('--tokens', args[at + 1] ?? '', [1000, 10_000_000]);
const seed = randomInt(1_000_000);

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}

write(`seed ${String(seed)}`);
const report = await runLong({
  tokens,
  seed,
  onSample: (drawn) => {
    if (process.stderr.isTTY) process.stderr.write(`\r${String(drawn)} tokens`);
  },
});
longRunLines(report).forEach(write);
const tooLarge = grown(report);
for (const { name, role } of tooLarge) write(`${name} grew by more than ${String(mostGrowthBytes[role])} bytes.`);
write(tooLarge.length === 0 ? 'Memory is flat.' : `${String(tooLarge.length)} processes grew.`);
process.exitCode = tooLarge.length === 0 ? 0 : 1;
