/**
 * Debian packages that tests need and a checkout cannot bring along, each with its reason. As root they are installed; for
 * anybody else the tiers that need them fail and say which are missing.
 */
import { spawnSync } from 'node:child_process';
import type { TierName } from './tiers.ts';

export interface DebianPackage {
  readonly name: string;
  readonly reason: string;
  readonly neededBy: readonly TierName[];
}

/**
 * Test hosts are whole systems (test/hosts/), ssh is tested against a real server (test/ssh/), rules by the program that
 * reads them (test/grafana/); Node and /proc do for all else.
 */
export const debianPackages: readonly DebianPackage[] = [
  { name: 'systemd-container', reason: 'boots test hosts', neededBy: ['hosts'] },
  { name: 'mmdebstrap', reason: 'makes the file system of test hosts', neededBy: ['hosts'] },
  { name: 'iproute2', reason: 'makes the networks of test hosts', neededBy: ['hosts'] },
  { name: 'iptables', reason: 'closes ports of test hosts', neededBy: ['hosts'] },
  { name: 'openssh-client', reason: 'makes the keys of test hosts and logs in to them', neededBy: ['hosts'] },
  { name: 'openssh-server', reason: 'is the server that ssh sessions are tested against', neededBy: ['hosts'] },
  { name: 'sudo', reason: 'is what ssh sessions become root with', neededBy: ['hosts'] },
  { name: 'prometheus', reason: 'checks rules, and scrapes rings under them', neededBy: ['ring', 'hosts'] },
  { name: 'tmux', reason: 'is the terminal that `watch` is drawn in', neededBy: ['ring'] },
  { name: 'e2fsprogs', reason: 'makes the small disks of test hosts', neededBy: ['hosts'] },
];

export type Preparation =
  | { readonly kind: 'ready'; readonly installed: readonly string[] }
  | { readonly kind: 'missing'; readonly packages: readonly DebianPackage[]; readonly why: string };

/** Makes the packages of the tiers present. Does nothing, and asks nothing, when they need none. */
export function preparePackages(needed: readonly DebianPackage[], isRoot: boolean): Preparation {
  const missing = needed.filter(({ name }) => !isInstalled(name));
  if (missing.length === 0) return { kind: 'ready', installed: [] };
  if (!isRoot) return { kind: 'missing', packages: missing, why: 'only root can install them' };
  const names = missing.map(({ name }) => name);
  const why = aptGet(['update']) ?? aptGet(['install', '--yes', '--no-install-recommends', ...names]);
  return why === null ? { kind: 'ready', installed: names } : { kind: 'missing', packages: missing, why };
}

export const neededBy = (tier: TierName, all: readonly DebianPackage[]): readonly DebianPackage[] =>
  all.filter((debianPackage) => debianPackage.neededBy.includes(tier));

function isInstalled(name: string): boolean {
  const { stdout } = spawnSync('dpkg-query', ['--show', '--showformat=${db:Status-Status}', name], {
    encoding: 'utf8',
  });
  return stdout === 'installed';
}

/** Null when it went well, else why not. */
function aptGet(words: readonly string[]): string | null {
  const { status, error, stderr } = spawnSync('apt-get', words, {
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (status === 0) return null;
  return `apt-get ${words.join(' ')}: ${error?.message ?? stderr.trim()}`;
}
