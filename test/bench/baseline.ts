/** A program of somebody else's beside p4: a command that prints tokens per second. */
import { execFile } from 'node:child_process';

import { P4Error } from '../../protocol/errors.ts';
import { interruption } from '../../provisioner/interrupt.ts';
import { spreadOf, type Spread } from './statistics.ts';
import { beside, type Verdict } from './verdict.ts';

export interface Baseline {
  /** Runs the command once; nothing without one. */
  run(): Promise<void>;
  /** What it has printed so far. */
  readonly tokensPerSecond: readonly number[];
}

/** Longest run of the command. */
const mostMs = 300_000;

export function baselineArm(command: string | null, signal: AbortSignal): Baseline {
  const tokensPerSecond: number[] = [];
  const run = async (): Promise<void> => {
    if (command !== null) tokensPerSecond.push(lastNumber(command, await outputOf(command, signal)));
  };
  return { run, tokensPerSecond };
}

/**
 * The last number of an output.
 * @throws INVALID_ARGUMENT where there is none above 0
 */
export function lastNumber(command: string, output: string): number {
  const value = Number(output.match(/\d+(?:\.\d+)?/g)?.at(-1));
  if (value > 0) return value;
  const expected = 'a command whose last number on standard output is tokens per second';
  throw new P4Error('INVALID_ARGUMENT', { option: '--baseline', found: command, expected });
}

export function baselineVerdicts(others: readonly number[], ring: Spread): readonly Verdict[] {
  if (others.length === 0) return [];
  const found = spreadOf(others);
  return [
    beside({ figure: 'decode of the command of --baseline, tokens/s', found }),
    beside({ figure: 'decode, one agent / the command of --baseline, medians', found: ring.median / found.median }),
  ];
}

/** @throws INVALID_ARGUMENT for a command that fails; CANCELLED */
function outputOf(command: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('/bin/sh', ['-c', command], { timeout: mostMs, signal }, (error, stdout) => {
      if (error === null) resolve(stdout);
      else if (signal.aborted) reject(interruption(signal));
      else {
        const expected = 'a command that ends with status 0';
        reject(new P4Error('INVALID_ARGUMENT', { option: '--baseline', found: command, expected }));
      }
    });
  });
}
