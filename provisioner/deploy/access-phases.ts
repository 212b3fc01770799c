/** The phases `connect`, `privileges` and `lock`: from an inventory to root on every host, alone there. */
import { limits } from '../../protocol/limits.ts';
import type { Operator } from '../ssh/operator-config.ts';
import { checkPrivileges, openSessions, sshContext } from '../ssh/session-opening.ts';
import type { Deployment } from './deploy-order.ts';
import { onHosts } from './fork.ts';
import { lockHost, unlockHost } from './host-lock.ts';

/** @throws STATE_UNREADABLE, SSH_CONFIG_UNUSABLE, CANCELLED */
export async function connect({ order, hosts, signal }: Deployment, operator: Operator): Promise<void> {
  const { inventory, inventoryFile, state, acceptance, prompt } = order;
  const context = await sshContext({ inventory, inventoryFile, state, acceptance, operator, prompt, signal });
  const opened = await openSessions(
    hosts.map(({ host }) => host),
    context,
    Math.min(order.forks, limits.sshForks),
  );
  for (const outcome of opened) {
    const run = hosts.find(({ host }) => host === outcome.host);
    if (outcome.kind === 'open') {
      if (run !== undefined) run.session = outcome.session;
    } else run?.fail('connect', outcome.error);
  }
  signal.throwIfAborted();
}

export async function becomeRoot({ order, hosts, signal }: Deployment): Promise<void> {
  await onHosts({ phase: 'privileges', hosts, forks: order.forks }, ({ session }) => checkPrivileges(session, signal));
}

/** Host by host, in one order for everybody: two deployments at once never each hold what the other wants. */
export async function lockHosts({ order, hosts, owner, report, signal }: Deployment): Promise<void> {
  const inOrder = [...hosts].sort((one, other) => (one.name < other.name ? -1 : 1));
  await onHosts({ phase: 'lock', hosts: inOrder, forks: 1 }, async (host) => {
    // One that is held by another stays untouched, and so do the rest.
    if (hosts.some(({ failure }) => failure?.phase === 'lock')) return;
    const { madeFolder, tookOver } = await lockHost(host.session, owner, { force: order.forcesUnlock, signal });
    host.isLocked = true;
    host.madeFolder = madeFolder;
    if (tookOver !== null) report.host(host.name, `goes on after the run of ${tookOver.since}, which lost the host`);
  });
}

/** Whatever became of the deployment. A host that does not answer any more keeps its lock. */
export async function letGo({ hosts, owner }: Deployment): Promise<void> {
  await Promise.all(
    hosts.map(async (host) => {
      if (!host.isConnected) return;
      if (host.isLocked) await unlockHost(host.session, owner).catch(() => undefined);
      await host.session.close();
    }),
  );
}
