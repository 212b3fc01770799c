/**
 * How much of the CPUs' time the control groups of this process leave it: a container may see all CPUs of a machine and be
 * stopped for most of the time. Pure: files come through a function.
 */
import type { ReadFile } from './topology.ts';

const groupsPath = '/proc/self/cgroup';
const root = '/sys/fs/cgroup';

/**
 * CPUs' worth of time, the least of the process's group and those above it; 0 for no limit. Inside a container the group's
 * path is that of the container, or cannot be found: then its own root is looked at alone.
 */
export function cpuQuota(read: ReadFile): number {
  const quotas = [...groupFolders(read)].flatMap(({ folder, version }) => {
    const quota = version === 2 ? quotaOf(read(`${folder}/cpu.max`)) : formerQuotaOf(folder, read);
    return quota === null ? [] : [quota];
  });
  return quotas.length === 0 ? 0 : Math.min(...quotas);
}

interface GroupFolder {
  readonly folder: string;
  readonly version: 1 | 2;
}

function* groupFolders(read: ReadFile): Generator<GroupFolder> {
  for (const line of read(groupsPath).split('\n')) {
    const [, controllers, path] = /^[0-9]+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    const isV2 = controllers === '';
    if (!isV2 && !controllers.split(',').includes('cpu')) continue;
    const mount = isV2 ? root : `${root}/cpu`;
    const parts = path.split('/').filter((part) => part !== '');
    for (let depth = parts.length; depth >= 0; depth -= 1) {
      yield { folder: [mount, ...parts.slice(0, depth)].join('/'), version: isV2 ? 2 : 1 };
    }
  }
}

/** `cpu.max`: quota and period in microseconds, or `max` for no limit. */
function quotaOf(text: string): number | null {
  const [, quota, period] = /^([0-9]+) ([0-9]+)$/.exec(text.trim()) ?? [];
  return ratioOf(Number(quota), Number(period));
}

/** Version 1 has a file for each; -1 for no limit. */
const formerQuotaOf = (folder: string, read: ReadFile): number | null =>
  ratioOf(numberOf(read(`${folder}/cpu.cfs_quota_us`)), numberOf(read(`${folder}/cpu.cfs_period_us`)));

const numberOf = (text: string): number => (text === '' ? Number.NaN : Number(text));

const ratioOf = (quota: number, period: number): number | null => (quota > 0 && period > 0 ? quota / period : null);
