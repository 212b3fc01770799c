/** Whether hosts can run p4, from their facts. Pure; each fault is an error of one host. */
import { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { HostFacts } from './facts.ts';

/** What the release at hand runs on. */
export interface ReleaseNeeds {
  /** In Node's words: `x64`, `arm64`. */
  readonly architecture: string;
}

/** The first systemd with every setting of our units (Debian 11 has 247). */
const leastSystemd = 247;

/** Node's word for each of `uname -m`'s. */
const architectures: Readonly<Record<string, string>> = {
  x86_64: 'x64',
  amd64: 'x64',
  aarch64: 'arm64',
  arm64: 'arm64',
};

export const architectureOf = ({ machine }: HostFacts): string => architectures[machine] ?? machine;

/** @returns `null` for a host that can */
export function unfitness(
  host: HostName,
  facts: HostFacts,
  { needs, now }: { readonly needs: ReleaseNeeds; readonly now: Date },
): P4Error | null {
  const unsupported = (found: string, needed: string): P4Error =>
    new P4Error('HOST_UNSUPPORTED', { host, found, needs: needed });
  if (facts.kernel.name !== 'Linux') return unsupported(facts.kernel.name, 'Linux');
  if (facts.systemdVersion === null) return unsupported('a machine that systemd has not booted', 'systemd');
  if (facts.systemdVersion < leastSystemd)
    return unsupported(`systemd ${facts.systemdVersion}`, `systemd ${leastSystemd} or newer`);
  if (architectureOf(facts) !== needs.architecture) {
    const found = architectureOf(facts);
    const words = `${needs.architecture}; for ${found}: a Node runtime and the libraries of llama.cpp built for it, which this operator's machine does not have`;
    return unsupported(`the architecture ${found} (${facts.machine})`, words);
  }
  if (facts.libc.kind !== 'glibc') return unsupported(`the C library ${facts.libc.text}`, 'glibc');
  return clockFault(host, facts, now);
}

/** Certificates are valid from an hour before they are made: less than that is harmless. */
function clockFault(host: HostName, { clockMs }: HostFacts, now: Date): P4Error | null {
  const offMs = clockMs - now.getTime();
  if (Math.abs(offMs) < limits.certificateClockSkewMs) return null;
  const minutes = Math.round(Math.abs(offMs) / 60_000);
  return new P4Error('HOST_CLOCK_WRONG', { host, off: `${minutes} minutes ${offMs < 0 ? 'behind' : 'ahead'}` });
}

/** A clock that is off by more than this is worth a word. */
export const clockWarningMs = 60_000;

/** Entries of the inventory that are one machine (A4), as an error of each later one. */
export function sharedMachines(
  hosts: readonly { readonly host: HostName; readonly facts: HostFacts }[],
): readonly { readonly host: HostName; readonly error: P4Error }[] {
  return hosts.flatMap(({ host, facts }, index) => {
    const twin = hosts.slice(0, index).find((other) => other.facts.machineId === facts.machineId);
    if (twin === undefined || facts.machineId === '') return [];
    const error = new P4Error('HOSTS_ARE_ONE_MACHINE', { hosts: [twin.host, host], machineId: facts.machineId });
    return [{ host, error }];
  });
}
