/** A process of the benchmark's own that is told what to do, one order at a time. */
import { fork, type ChildProcess } from 'node:child_process';

import { P4Error } from '../../protocol/errors.ts';

export interface BenchChild {
  /** Path of its program. */
  readonly main: string;
  readonly words?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export const forkChild = ({ main, words = [], environment = {} }: BenchChild): ChildProcess =>
  fork(main, words, {
    // A group of its own: Ctrl-C reaches the benchmark, which ends it.
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, ...environment },
  });

/**
 * What it says next. One order at a time: what comes answers the one that was sent.
 * @param name of the process, for the error
 * @throws STAGE_LOST when it ends instead
 */
export function nextAnswer<Answer>(child: ChildProcess, name: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const hear = (answer: Answer): void => {
      child.off('exit', gone);
      resolve(answer);
    };
    const gone = (status: number | null, by: string | null): void => {
      child.off('message', hear);
      reject(new P4Error('STAGE_LOST', { process: name, exit: by ?? status ?? 'unknown' }));
    };
    child.once('message', hear);
    child.once('exit', gone);
  });
}
