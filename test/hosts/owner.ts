/**
 * Whose a fleet is, kept in the names of what it leaves in the machine: `p4-hosts-<pid>-<start time>-<random>`. Nearly all
 * of a fleet is bound to processes and ends with them; folders and control groups are not, and their names tell a later run
 * whether the process that made them is still there.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';

const namePattern = /^p4-hosts-(\d+)-(\d+)-[0-9a-f]+$/;

/** A new name, owned by this process. `id` is its random end: 6 hexadecimal digits. */
export function newOwnedName(): { readonly name: string; readonly id: string } {
  const id = randomBytes(3).toString('hex');
  return { name: `p4-hosts-${process.pid}-${startTime(process.pid) ?? '0'}-${id}`, id };
}

/** Whether a name is one of these and its owner has ended. */
export function isAbandoned(name: string): boolean {
  const [, pid, started] = namePattern.exec(name) ?? [];
  return pid !== undefined && started !== undefined && startTime(Number(pid)) !== started;
}

/** Clock ticks between the machine's start and the process's: with its pid it names a process for good. Null: no such one. */
function startTime(pid: number): string | null {
  try {
    // The second field is the program's name in parentheses, which may hold anything.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return fields[19] ?? null;
  } catch {
    return null;
  }
}
