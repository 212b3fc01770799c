/** promtool, of Debian's `prometheus` package. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What it said; fails with that when it found a fault. */
export async function promtool(...words: readonly string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('promtool', words).catch((error: unknown) => {
    const said = error instanceof Error && 'stdout' in error && 'stderr' in error ? [error.stdout, error.stderr] : [];
    throw new Error(`promtool ${words.join(' ')}: ${said.join('\n')}`, { cause: error });
  });
  return `${stdout}${stderr}`;
}
