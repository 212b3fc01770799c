/** Runs a script on a host that has to succeed. */
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { fullestFolder, spaceScript } from './host-space.ts';
import type { RemoteOrder, RemoteResult, Session } from './session.ts';

/**
 * @param step what the script does, for the error
 * @returns what it printed
 * @throws HOST_SCRIPT_FAILED, HOST_DISK_FULL, and what `Session.run` throws
 */
export async function runHostScript(session: Session, step: string, order: RemoteOrder): Promise<string> {
  const result = await session.run(order);
  if (result.status === 0) return result.stdout.toString('utf8');
  throw await scriptFailure(session, step, result);
}

/** The error of a script that ended badly; a full disk is told apart, with what is free on it. */
export async function scriptFailure(
  session: Session,
  step: string,
  { status, stderr }: Pick<RemoteResult, 'status' | 'stderr'>,
): Promise<P4Error> {
  const said = stderr
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-lastLines);
  const failed = { host: session.host, step, said };
  if (!/No space left on device|Disk quota exceeded/.test(stderr))
    return new P4Error('HOST_SCRIPT_FAILED', { ...failed, status });
  // How much a step would have written nobody knows; this much a host keeps in any case.
  const needed = { neededBytes: limits.hostSpareBytes };
  return new P4Error('HOST_DISK_FULL', { ...failed, ...(await fullFolder(session, said)), ...needed });
}

/** Lines of a failed script's standard error that are shown. */
const lastLines = 8;

async function fullFolder(
  session: Session,
  said: readonly string[],
): Promise<Readonly<Record<string, string | number>>> {
  const { status, stdout } = await session.run({ script: spaceScript(said), timeoutMs: limits.answerMs });
  const full = status === 0 ? fullestFolder(stdout.toString('utf8')) : null;
  return full === null ? {} : { ...full };
}
