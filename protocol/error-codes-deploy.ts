/** Error codes of `deploy`: what a host is, who holds it, and what a new release does on it. */
import type { CodeRule } from './error-rule.ts';

export const deployCodes = {
  INVENTORY_UNREADABLE: {
    exit: 2,
    status: 'NOT_FOUND',
    says: 'The inventory file cannot be read.',
    remedy: 'Check the path and the rights on it.',
  },
  HOST_FACTS_UNREADABLE: {
    exit: 4,
    status: 'INTERNAL',
    says: 'What the host says of itself is not in the expected form.',
    remedy: 'Log in to the host as the inventory says and see whether a shell there prints anything on its own.',
  },
  HOST_SCRIPT_FAILED: {
    exit: 4,
    status: 'INTERNAL',
    says: 'A step of the deployment failed on the host.',
    remedy: 'Mend what the host says here, then deploy again: what is done already stays done.',
  },
  HOST_UNSUPPORTED: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The host cannot run p4.',
    remedy: 'Use a host that has what is named here, or leave this one out with --limit.',
  },
  HOST_DISK_FULL: {
    exit: 4,
    status: 'RESOURCE_EXHAUSTED',
    says: 'The host has too little free disk.',
    remedy: 'Make room on the file system named here, then deploy again.',
  },
  HOST_CLOCK_WRONG: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: "The host's clock is so far off that certificates are not valid there.",
    remedy: "Set the host's clock (systemd-timesyncd does it), then deploy again.",
  },
  HOSTS_ARE_ONE_MACHINE: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'Two hosts of the inventory are one machine.',
    remedy:
      'Keep one of them: a machine has one agent. Where two machines were cloned from one image, give one a machine-id of its own (systemd-machine-id-setup).',
  },
  HOST_LOCKED: {
    exit: 3,
    status: 'ABORTED',
    says: 'Another deployment holds the host.',
    remedy:
      'Wait until it has ended, then deploy again. --force-unlock takes the host over, and is right only where the process named here has certainly ended without letting go: two deployments at once leave parts of both.',
  },
  STATE_FOLDER_FOREIGN: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The state folder on the host holds files that are not p4’s.',
    remedy: 'Name an empty folder, or one that is not there yet, as `stateFolder` in the inventory.',
  },
  RINGS_WOULD_STOP: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'This deployment has to restart agents under loaded rings.',
    remedy: 'Unload the rings first, or deploy with --restart-rings and load them again afterwards.',
  },
  RELEASE_NOT_SENT: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'The host does not have the release that is to be switched to.',
    remedy: 'Deploy without --tags, or with the phase release among them.',
  },
  RELEASE_PART_MISSING: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'Parts of what such hosts have to be sent are not at hand.',
    remedy: 'Get what each line names, or leave these hosts out with --limit.',
  },
  RELEASE_SOURCE_CHANGED: {
    exit: 4,
    status: 'ABORTED',
    says: 'A file of the release changed, or went, while it was read or sent.',
    remedy: 'Let nothing build or install while a deployment runs, then deploy again.',
  },
  RELEASE_ARRIVED_DAMAGED: {
    exit: 4,
    status: 'INTERNAL',
    says: 'What arrived on the host is twice not what was sent.',
    remedy:
      "Deploy again while nothing builds or installs here; if that does not help, check the host's disk and memory.",
  },
  HOST_LIBRARIES_OLD: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: "The host's system libraries are older than this release needs.",
    remedy: 'Upgrade the host, install there what is named here, or deploy from a machine with older libraries.',
  },
  TRIAL_FAILED: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The new release does not start on the host; nothing was switched.',
    remedy: 'What it said last stands here; the former release runs on.',
  },
  AGENT_NOT_ANSWERING: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The agent of the new release does not answer on its advertised address.',
    remedy: 'The host is back at what it ran before; what the agent said last stands here.',
  },
  AGENT_NOT_REACHED: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The agent runs on its host, and this machine does not reach it.',
    remedy:
      'Open a way from this machine to the port and one of the addresses here, or give the host a jump host in the inventory: then ssh carries commands to its agent. The host is back at what it ran before.',
  },
  PACKAGE_NOT_INSTALLED: {
    exit: 4,
    status: 'INTERNAL',
    says: 'The host could not install a package; agents and rings are not touched by that.',
    remedy:
      'Mend what apt-get says here, or install the package there by hand, then deploy again (--tags monitoring is enough).',
  },
  PROMETHEUS_CONFIG_REFUSED: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The promtool of the host refuses the configuration or the rules; Prometheus goes on with what it had.',
    remedy: 'Upgrade Prometheus there: it has to be 2.42 or newer. What promtool says stands here.',
  },
  PROMETHEUS_NOT_ANSWERING: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'Prometheus does not answer on the monitoring host; agents and rings are not touched by that.',
    remedy:
      'What it said last stands here. Where another process has its port, give the monitoring another one in the inventory.',
  },
  REMOVAL_UNCONFIRMED: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'Removal also deletes journals and slices and ends the rings named here, and nobody has confirmed it.',
    remedy: 'See all that goes with --check --remove; then confirm with --yes.',
  },
} as const satisfies Record<string, CodeRule>;
