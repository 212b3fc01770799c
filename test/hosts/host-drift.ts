/** For tests: what may change on a host behind deploy's back, chosen by a seed. */
import { createHash } from 'node:crypto';

export interface Drift {
  readonly what: string;
  /** A script for root on the host. */
  readonly script: string;
}

const drifts: readonly Drift[] = [
  { what: "a file's text", script: 'echo "# drift" >>/etc/systemd/system/p4-agent.service' },
  { what: 'a configuration', script: 'echo " " >>/etc/p4/agent.json' },
  { what: 'a certificate', script: 'echo >>/etc/p4/pki/agent.crt' },
  { what: "a file's mode", script: 'chmod 666 /etc/systemd/system/p4-stage@.service' },
  { what: "a key's mode", script: 'chmod 644 /etc/p4/pki/agent.key' },
  { what: "a file's owner", script: 'chown root:root /etc/p4/pki/agent.key' },
  { what: 'a missing file', script: 'rm /opt/p4/libexec/stage-end' },
  { what: "a folder's mode", script: 'chmod 777 /etc/p4' },
  { what: 'a stranger in the state folder', script: 'touch /var/lib/p4/slices/stranger' },
  { what: 'the link', script: 'ln -sfn releases/0000000000000000 /opt/p4/current' },
  { what: 'no link', script: 'rm /opt/p4/current' },
  { what: 'a unit that is stopped', script: 'systemctl stop p4-agent.service' },
  { what: 'a unit that is disabled', script: 'systemctl --quiet disable p4-agent.service' },
  { what: "the user's shell", script: 'usermod --shell /bin/sh p4' },
  { what: 'no user', script: 'userdel -f p4; groupdel p4 2>/dev/null; true' },
  { what: "a program's text", script: 'echo "// drift" >>/opt/p4/current/dist/agent/main.js' },
  { what: 'a missing program file', script: 'rm /opt/p4/current/dist/agent/agent.js' },
];

/** One to three of them, the same for the same seed; those that break the link come last. */
export function driftsOf(seed: string): readonly Drift[] {
  const bytes = createHash('sha256').update(seed).digest();
  const count = 1 + ((bytes[0] ?? 0) % 3);
  const chosen = new Set(Array.from({ length: count }, (_none, index) => (bytes[index + 1] ?? 0) % drifts.length));
  return [...chosen]
    .flatMap((index) => drifts[index] ?? [])
    .sort((one, other) => Number(one.what.includes('link')) - Number(other.what.includes('link')));
}
