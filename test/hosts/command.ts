/** Runs programs of the machine and waits for them, within a deadline. */
import { execFile } from 'node:child_process';

/** The program, then its arguments. */
export type Words = readonly [string, ...string[]];

export interface CommandOptions {
  readonly input?: string | Uint8Array;
  /** When it is killed and the command fails; 60 s if absent. */
  readonly timeoutMs?: number;
}

export interface CommandOutcome {
  readonly status: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** Resolves with any exit status. Fails when the program cannot be started, or was ended by a signal. */
export function attempt(
  words: Words,
  { input = '', timeoutMs = 60_000 }: CommandOptions = {},
): Promise<CommandOutcome> {
  const [program, ...rest] = words;
  return new Promise((resolve, reject) => {
    const options = {
      encoding: 'buffer',
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: 256 * 1024 ** 2,
    } as const;
    const child = execFile(program, rest, options, (error, stdout, stderr) => {
      const status = error === null ? 0 : error.code;
      if (typeof status === 'number') resolve({ status, stdout, stderr: stderr.toString('utf8') });
      else
        reject(
          new Error(`${words.join(' ')}: ended without a status, at most after ${timeoutMs} ms`, { cause: error }),
        );
    });
    // A program may end without reading all of it, which its status tells.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

/** What the program wrote; fails when its exit status is not 0. */
export async function run(words: Words, options: CommandOptions = {}): Promise<string> {
  const { status, stdout, stderr } = await attempt(words, options);
  const text = stdout.toString('utf8');
  if (status !== 0) throw new Error(`${words.join(' ')}: exit status ${status}\n${stderr}${text}`);
  return text;
}
