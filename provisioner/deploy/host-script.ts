/** Runs a script on a host that has to succeed. */
import { P4Error } from '../../protocol/errors.ts';
import type { RemoteOrder, Session } from '../ssh/session.ts';

/**
 * @param step what the script does, for the error
 * @returns what it printed
 * @throws HOST_SCRIPT_FAILED, HOST_DISK_FULL, and what `Session.run` throws
 */
export async function runHostScript(session: Session, step: string, order: RemoteOrder): Promise<string> {
  const { status, stdout, stderr } = await session.run(order);
  if (status === 0) return stdout.toString('utf8');
  throw hostScriptFailure({ host: session.host, step, status, stderr });
}

export function hostScriptFailure(found: {
  readonly host: string;
  readonly step: string;
  readonly status: number;
  readonly stderr: string;
}): P4Error {
  const { host, step, status, stderr } = found;
  const said = stderr
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-lastLines);
  const code = said.some((line) => line.includes('No space left on device')) ? 'HOST_DISK_FULL' : 'HOST_SCRIPT_FAILED';
  return new P4Error(code, { host, step, status, said });
}

/** Lines of a failed script's standard error that are shown. */
const lastLines = 8;
