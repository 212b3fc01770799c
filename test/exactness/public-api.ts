/** Asks the second oracle, in a process of its own: what node-llama-cpp says about rows of an uncut model. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import { assert } from '../../protocol/assert.ts';

export interface PublicApiOrder {
  readonly path: string;
  readonly contextTokens: number;
  /** The rows are fed once with each of these settings, every time to an empty context. */
  readonly flashAttention: readonly boolean[];
  /** Token rows, fed one list after another; each list's last row is what a step is about. */
  readonly rows: readonly (readonly number[])[];
}

export interface PublicApiStep {
  /** What it draws at temperature 0. */
  readonly token: number;
  /** One for each token id. */
  readonly probabilities: readonly number[];
}

/** What two sides of one program tell each other is checked for its form only. */
export const isPublicApiOrder = (value: unknown): value is PublicApiOrder =>
  typeof value === 'object' && value !== null && 'path' in value && 'rows' in value && Array.isArray(value.rows);

const isRuns = (value: unknown): value is PublicApiStep[][] =>
  Array.isArray(value) && value.every((run: unknown) => Array.isArray(run) && run.every(isStep));

const isStep = (value: unknown): boolean => typeof value === 'object' && value !== null && 'probabilities' in value;

/** @returns the steps with each setting of flash attention */
export async function askPublicApi(order: PublicApiOrder): Promise<PublicApiStep[][]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'public-api-main.js')], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(JSON.stringify(order));
  const closed = once(child, 'close');
  const [said, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  await closed;
  const status = child.exitCode;
  assert(status === 0, `the process of the second oracle ends well, not with: ${errors.slice(-2000)}`);
  // The package may write a word of its own before.
  const runs: unknown = JSON.parse(said.slice(said.indexOf('[[{')));
  assert(isRuns(runs) && runs.length === order.flashAttention.length, 'the answer has its form');
  return runs;
}
