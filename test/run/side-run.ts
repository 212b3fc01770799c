/**
 * A tier that runs beside the others, in a runner of its own: real hosts wait for systemd and sshd most of the time, and
 * leave the processor to whoever wants it. Its lines are told when it has ended.
 */
import { spawn } from 'node:child_process';
import { markName } from './leftovers.ts';
import type { Totals } from './report.ts';
import type { TierName } from './tiers.ts';

export interface SideRun {
  /** Without the closing line. */
  readonly lines: readonly string[];
  readonly totals: Totals;
}

/** @param main the runner's own program */
export function startSideRun(main: string, tier: TierName): { readonly ended: Promise<SideRun>; end(): void } {
  // A mark of its own: what it starts is not left behind by the tiers beside it.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== markName));
  const child = spawn(process.execPath, ['--enable-source-maps', main, tier], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = new Promise<SideRun>((resolve) => {
    child.once('close', (status) => {
      resolve(sideRun(said, status));
    });
  });
  return {
    ended,
    end: () => {
      child.kill('SIGTERM');
    },
  };
}

/** What a runner said; one that did not come to its closing line has failed. */
export function sideRun(said: string, status: number | null): SideRun {
  const lines = said.trimEnd().split('\n');
  const [, passed, failed, skipped = '0'] =
    /^([0-9]+) passed, ([0-9]+) failed(?:, ([0-9]+) skipped)?$/.exec(lines.at(-1) ?? '') ?? [];
  if (passed === undefined || failed === undefined) {
    const told = `  FAIL  the runner beside this one ended with status ${String(status)}`;
    return { lines: [...lines, told], totals: { passed: 0, failed: 1, skipped: 0 } };
  }
  const totals = { passed: Number(passed), failed: Number(failed), skipped: Number(skipped) };
  return { lines: lines.slice(0, -2), totals };
}
