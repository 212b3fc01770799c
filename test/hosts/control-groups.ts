/**
 * A control group for every host, in the hierarchies that systemd keeps its units in. Without one of its own a host's
 * systemd would share those of its neighbours and wait for, and end, their processes.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { mkdir, readFile, readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../fixture/eventually.ts';
import { isAbandoned } from './owner.ts';

/** The groups of one fleet: a folder per hierarchy, in it one per host. */
export class ControlGroups {
  readonly #folders: readonly string[];

  constructor(name: string) {
    this.#folders = ownGroups().map((folder) => join(folder, name));
  }

  /** Folders of a host's groups, made. A process is put in by writing it to their `cgroup.procs`. */
  async add(host: string): Promise<readonly string[]> {
    const folders = this.#folders.map((folder) => join(folder, host));
    for (const folder of folders) await mkdir(folder, { recursive: true });
    return folders;
  }

  /** Removes them all. Their processes have ended, or are just ending. */
  async remove(): Promise<void> {
    for (const folder of this.#folders) await removeGroup(folder);
  }
}

/** Removes the groups of fleets whose owner has ended, and ends what may still run in them. */
export async function removeAbandonedGroups(): Promise<void> {
  for (const folder of ownGroups()) {
    for (const name of readdirSync(folder)) {
      if (!isAbandoned(name)) continue;
      await endProcesses(join(folder, name));
      await removeGroup(join(folder, name));
    }
  }
}

const ownGroups = (): readonly string[] =>
  systemdGroups(readFileSync('/proc/self/cgroup', 'utf8'), readFileSync('/proc/self/mountinfo', 'utf8'));

/** Where a process's groups of systemd's hierarchies are mounted, out of its `/proc/self/cgroup` and `mountinfo`. */
export function systemdGroups(groups: string, mounts: string): readonly string[] {
  const pathOf = (hierarchy: RegExp): string | undefined =>
    groups
      .split('\n')
      .find((line) => hierarchy.test(line))
      ?.replace(hierarchy, '');
  return mounts.split('\n').flatMap((line) => {
    const [own = '', file = ''] = line.split(' - ');
    const [, , , root = '', mountPoint = ''] = own.split(' ');
    const [type = '', , options = ''] = file.split(' ');
    const isNamed = type === 'cgroup' && options.split(',').includes('name=systemd');
    if (!isNamed && type !== 'cgroup2') return [];
    const path = pathOf(isNamed ? /^\d+:name=systemd:/ : /^0::/);
    if (path === undefined) return [];
    return [join(mountPoint, path.startsWith(root) ? path.slice(root.length) : path)];
  });
}

/** Removes a group and those in it, which the kernel allows once their processes are gone. */
async function removeGroup(folder: string): Promise<void> {
  await eventually(() => tryRemoving(folder), { what: `the control group ${folder} is empty` });
}

async function tryRemoving(folder: string): Promise<boolean> {
  try {
    for (const name of await subgroups(folder)) if (!(await tryRemoving(join(folder, name)))) return false;
    await rmdir(folder);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    if (error.code === 'EBUSY' || error.code === 'ENOTEMPTY') return false;
    if (error.code !== 'ENOENT') throw error;
  }
  return true;
}

async function subgroups(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

async function endProcesses(folder: string): Promise<void> {
  for (const name of await subgroups(folder)) await endProcesses(join(folder, name));
  const list = join(folder, 'cgroup.procs');
  const pids = existsSync(list) ? (await readFile(list, 'utf8')).split('\n').filter((line) => line !== '') : [];
  for (const pid of pids.map(Number).filter((number) => number > 1)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
  }
}
