/** Each guard taken away in turn, in a process of its own: how many seeds then break a rule, and which. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { mutations } from './mutations.ts';
import type { SeedFailure } from './seed-runs.ts';

/** So many failing seeds say that a mutation is caught; the rest of them need not run. */
const enough = 25;

export interface MutationOutcome {
  readonly name: string;
  readonly failures: readonly SeedFailure[];
  /** Seeds that ran: fewer than asked for where enough of them failed. */
  readonly tried: number;
  /** Whether it ran without end, or ended by itself. */
  readonly broke: string | null;
}

export function runMutation(
  name: string,
  { from, count }: { readonly from: number; readonly count: number },
): MutationOutcome {
  const words = [join(import.meta.dirname, 'mutated.js'), name, `${from}`, `${count}`, `${enough}`];
  const { stdout, stderr, status } = spawnSync(process.execPath, words, {
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  });
  if (status === 0) {
    const failures = JSON.parse(stdout) as SeedFailure[];
    const last = failures.at(-1);
    const tried = failures.length < enough || last === undefined ? count : last.seed - from + 1;
    return { name, failures, tried, broke: null };
  }
  return {
    name,
    failures: [],
    tried: count,
    broke: status === null ? 'without end' : (stderr.split('\n')[0] ?? 'ended'),
  };
}

export interface ReportOrder {
  readonly from: number;
  readonly count: number;
  /** A part of the names of those that are tried; empty for all. */
  readonly only: string;
}

/** @returns the exit status: 0 where at least 95 % of the mutations are caught */
export function reportMutations({ only, ...seeds }: ReportOrder, write: (line: string) => void): number {
  const chosen = mutations.filter(({ name }) => name.includes(only));
  let caught = 0;
  for (const { name } of chosen) {
    const { failures, tried, broke } = runMutation(name, seeds);
    const [first] = failures;
    if (first !== undefined || broke === 'without end') caught++;
    const found = broke ?? (first === undefined ? 'MISSED' : `seed ${first.seed}: ${first.found.split('\n')[0] ?? ''}`);
    write(`${`${failures.length}`.padStart(5)} of ${`${tried}`.padEnd(4)}  ${name.padEnd(44)} ${found.slice(0, 110)}`);
  }
  const share = caught / chosen.length;
  write(`${caught} of ${chosen.length} mutations are caught (${(share * 100).toFixed(1)} %)`);
  return share >= 0.95 ? 0 : 1;
}
