/** The probe program on this machine, as a child of this command. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import type { ProbeProcess } from './probe-client.ts';

/** Where the program is in a release, from its root. */
export const probeProgram = 'dist/agent/probe/main.js';

const probeMain = join(import.meta.dirname, '../../agent/probe/main.js');
/** Standard error that is kept, its last part. */
const saidCharacters = 8192;

/** @param wrapper words that run it elsewhere on this machine: in another network namespace, say */
export function startLocalProbe(wrapper: readonly string[] = []): Promise<ProbeProcess> {
  const [command, ...words] = [...wrapper, process.execPath, probeMain];
  const child = spawn(command, words, { stdio: ['pipe', 'pipe', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-saidCharacters);
  });
  const exited = new Promise<{ readonly status: number | null; readonly stderr: string }>((resolve) => {
    child.once('error', (error) => {
      resolve({ status: null, stderr: error.message });
    });
    child.once('close', (status) => {
      resolve({ status, stderr });
    });
  });
  const end = (): void => {
    child.kill('SIGKILL');
  };
  return Promise.resolve({ stdin: child.stdin, stdout: child.stdout, exited, end });
}
