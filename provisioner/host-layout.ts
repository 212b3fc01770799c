/** Where things are on a host; the files of `units/` name the same paths. What is p4's goes with `--remove`. */

export const hostLayout = {
  user: 'p4',
  group: 'p4',
  shell: '/usr/sbin/nologin',
  /** Releases, their files by content, the `current` link and the lock of a deployment. */
  programs: '/opt/p4',
  releases: '/opt/p4/releases',
  current: '/opt/p4/current',
  lock: '/opt/p4/deploy.lock',
  /** What was there before a run that is not over, to go back to. */
  former: '/opt/p4/former',
  configuration: '/etc/p4',
  agentConfig: '/etc/p4/agent.json',
  pki: '/etc/p4/pki',
  authority: '/etc/p4/pki/authority.crt',
  certificate: '/etc/p4/pki/agent.crt',
  key: '/etc/p4/pki/agent.key',
  revoked: '/etc/p4/pki/revoked.crl',
  /** Sockets of stages; goes with a reboot. */
  runtime: '/run/p4',
  /** A trial's configuration and state; goes when it ends. */
  trial: '/run/p4-trial',
  /** Units and their drop-ins, among those of others. */
  units: '/etc/systemd/system',
  polkitRules: '/etc/polkit-1/rules.d/50-p4.rules',
  agentUnit: 'p4-agent.service',
  trialUnit: 'p4-agent-trial.service',
} as const;

export const releaseFolder = (id: string): string => `${hostLayout.releases}/${id}`;

/** What the `current` link holds: relative, so that it is good wherever the folder is looked at from. */
export const currentTarget = (id: string): string => `releases/${id}`;
