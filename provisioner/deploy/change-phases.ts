/** The phases that make changes with a script on the host: `accounts`, `files` and `services`. */
import { applyScript } from './apply.ts';
import type { Deployment } from './deploy-order.ts';
import { onHosts } from './fork.ts';
import { formerUnits, keepScript, putBackScript, replacedPaths, forgetScript } from './former-state.ts';
import type { HostRun } from './host-run.ts';
import { runHostScript } from '../ssh/host-script.ts';
import type { PhaseName } from './phase.ts';

/** Makes the changes of one phase on one host, in one script. */
export async function makeChanges({ report }: Deployment, host: HostRun, phase: PhaseName): Promise<void> {
  const changes = host.changesIn(phase);
  if (changes.length === 0) return;
  report.at(host.name, phase);
  try {
    await runHostScript(host.session, phase, applyScript(changes));
  } finally {
    report.at(host.name, null);
  }
  for (const change of changes) {
    host.noteMade(change);
    report.change(host.name, change);
  }
}

export async function makeAllChanges(deployment: Deployment, phase: PhaseName): Promise<void> {
  const { order, hosts } = deployment;
  await onHosts({ phase, hosts, forks: order.forks }, (host) => makeChanges(deployment, host, phase));
}

/** Phases whose changes are put back where the release does not prove itself. */
const reversible: readonly PhaseName[] = ['files', 'services'];

/** Keeps what the coming changes replace. */
export async function keepFormer(host: HostRun): Promise<void> {
  const changes = reversible.flatMap((phase) => host.changesIn(phase));
  if (changes.length === 0) return;
  await runHostScript(host.session, 'keep the former state', { script: keepScript(replacedPaths(changes)) });
}

/** Puts back what was replaced, and restarts what ran. */
export async function putBack(host: HostRun): Promise<void> {
  const changes = host.changes.filter(({ phase }) => reversible.includes(phase));
  const script = putBackScript(replacedPaths(changes), formerUnits(changes, host.actual));
  await runHostScript(host.session, 'go back to the former release', { script });
  host.noteUndone(reversible);
  host.isSwitched = false;
}

export async function forgetFormer(host: HostRun): Promise<void> {
  await runHostScript(host.session, 'forget the former state', { script: forgetScript });
}
