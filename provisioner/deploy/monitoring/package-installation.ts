/** How a package of Debian's is installed on a host. */
import { monitoringLimits } from '../../../protocol/monitoring-limits.ts';
import { shellQuoted } from '../../ssh/shell-quoting.ts';

/** When an installation that does not end is given up, in milliseconds: all of its steps took their longest. */
export const installationMs =
  3 * monitoringLimits.packageFetchMs + monitoringLimits.packageLockMs + monitoringLimits.packageInstallMs;

/**
 * Everything is fetched first, within a deadline, and then installed without one: an installation that is cut off leaves a
 * host that can install nothing. Lists of packages are fetched only where those that are there do not do. Files in `/etc`
 * that an earlier installation left stay as they are.
 */
export const installCommands = (name: string): string => `get() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq --yes --no-install-recommends -o DPkg::Lock::Timeout=${seconds(monitoringLimits.packageLockMs)} \\
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" </dev/null >&2
}
fetch() {
  DEBIAN_FRONTEND=noninteractive timeout ${seconds(monitoringLimits.packageFetchMs)} apt-get -qq --yes --no-install-recommends "$@" </dev/null >&2
}
fetch --download-only install ${shellQuoted(name)} || { fetch update; fetch --download-only install ${shellQuoted(name)}; }
get install ${shellQuoted(name)}`;

const seconds = (ms: number): number => Math.ceil(ms / 1000);
