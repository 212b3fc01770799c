/** The phases `connect`, `privileges` and `lock`: from an inventory to root on every host, alone there. */
import { limits } from '../../protocol/limits.ts';
import type { Operator } from '../ssh/operator-config.ts';
import { checkPrivileges, openSessions, sshContext } from '../ssh/session-opening.ts';
import type { Deployment } from './deploy-order.ts';
import { onHosts } from './fork.ts';
import { hostHolder, lockHost, unlockHost } from './host-lock.ts';
import { beginPhase } from './telling.ts';

/** @throws STATE_UNREADABLE, SSH_CONFIG_UNUSABLE, INVALID_ARGUMENT, CANCELLED */
export async function connect(deployment: Deployment, operator: Operator): Promise<void> {
  const { order, hosts, signal } = deployment;
  beginPhase(deployment, 'connect');
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

export async function becomeRoot(deployment: Deployment): Promise<void> {
  const { order, hosts, signal } = deployment;
  beginPhase(deployment, 'privileges');
  await onHosts({ phase: 'privileges', hosts, forks: order.forks }, ({ session }) => checkPrivileges(session, signal));
}

/**
 * Host by host, in one order for everybody: two deployments at once never each hold what the other wants. From the first
 * that is held on, and with `--check`, they are only looked at: whoever else holds one is told as well.
 */
export async function lockHosts(deployment: Deployment): Promise<void> {
  const { order, hosts, owner, report, signal } = deployment;
  beginPhase(deployment, 'lock');
  const inOrder = [...hosts].sort((one, other) => (one.name < other.name ? -1 : 1));
  await onHosts({ phase: 'lock', hosts: inOrder, forks: order.isCheck ? order.forks : 1 }, async (host) => {
    if (order.isCheck || hosts.some(({ failure }) => failure?.phase === 'lock')) {
      const locked = order.forcesUnlock ? null : await hostHolder(host.session, owner, signal);
      if (locked !== null) throw locked;
      return;
    }
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
