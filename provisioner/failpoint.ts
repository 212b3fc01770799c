/**
 * Places at which a test has this process killed, as a power cut or `kill -9` there would end it.
 *
 * Only the environment of the process itself switches one on, and all it can do is what its owner can do at any time: kill
 * it. Without the variable, a place costs a comparison.
 */
import process from 'node:process';

const chosen = process.env['P4_LOADER_FAIL'];

/** Ends the process without another instruction, if this is the chosen place. */
export function failpoint(name: string): void {
  if (name === chosen) process.kill(process.pid, 'SIGKILL');
}
