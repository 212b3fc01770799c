/**
 * Opens sessions on hosts, the way the inventory and the operator's ssh configuration say.
 *
 * A context lives as long as a command: it remembers what was asked for (passphrases, passwords) and shares connections to
 * jump hosts.
 */
import { dirname } from 'node:path';

import { P4Error } from '../../protocol/errors.ts';
import type { Become, Inventory, InventoryHost } from '../../protocol/inventory.ts';
import { limits } from '../../protocol/limits.ts';
import type { StateFolder } from '../state-folder.ts';
import { ClientKeys } from './client-keys.ts';
import { HostTrust, type KeyAcceptance } from './host-trust.ts';
import { LinkPool } from './link-pool.ts';
import { openLink, type Link } from './link.ts';
import { absolutePath, OperatorConfig, type Operator } from './operator-config.ts';
import { RemoteSession } from './remote-session.ts';
import { loginsTo, routeOf, routeTo, type Hop, type RouteMap } from './route.ts';
import type { SecretPrompt } from './secret-prompt.ts';
import type { Session } from './session.ts';
import { SudoPasswords } from './sudo-passwords.ts';
import { present } from '../../protocol/assert.ts';

export interface SshContext {
  readonly map: RouteMap;
  readonly trust: HostTrust;
  readonly keys: ClientKeys;
  readonly passwords: SudoPasswords;
  readonly pool: LinkPool;
  readonly signal: AbortSignal;
}

export interface SshContextNeeds {
  readonly inventory: Inventory;
  /** Absolute path of its file: relative paths in it start in its folder. */
  readonly inventoryFile: string;
  readonly state: StateFolder;
  readonly acceptance: KeyAcceptance;
  readonly operator: Operator;
  readonly prompt: SecretPrompt;
  /** Ends everything that is still being opened. */
  readonly signal: AbortSignal;
}

/** What became of the opening of one host's session. */
export type OpenedHost =
  | { readonly kind: 'open'; readonly host: InventoryHost; readonly session: Session }
  | { readonly kind: 'failed'; readonly host: InventoryHost; readonly error: P4Error };

/**
 * @throws SSH_CONFIG_UNUSABLE where the operator's ssh configuration cannot be read; INVALID_ARGUMENT where a key is
 *   accepted for a machine that is on no way
 */
export async function sshContext(needs: SshContextNeeds): Promise<SshContext> {
  const { inventory, inventoryFile, state, acceptance, operator, prompt, signal } = needs;
  const config = await OperatorConfig.read(operator);
  const configured = config.of.bind(config);
  const map: RouteMap = { inventory, inventoryFolder: dirname(inventoryFile), operator, configured };
  refuseStrayAcceptance(acceptance, map);
  return {
    map,
    trust: new HostTrust(state.knownHostsFile, acceptance),
    keys: new ClientKeys(prompt),
    passwords: new SudoPasswords(prompt),
    pool: new LinkPool(),
    signal,
  };
}

/**
 * A key that is accepted for a name that no machine has would be passed over silently.
 * @throws INVALID_ARGUMENT
 */
function refuseStrayAcceptance({ fingerprints }: KeyAcceptance, map: RouteMap): void {
  if (fingerprints.length === 0) return;
  const labels = new Set(map.inventory.hosts.flatMap((host) => labelsTo(host, map)));
  const stray = fingerprints.find(({ host }) => !labels.has(host));
  if (stray === undefined) return;
  const expected = `one of ${[...labels].sort().join(', ')}`;
  throw new P4Error('INVALID_ARGUMENT', { option: '--accept-host-key', found: stray.host, expected });
}

/** A way that cannot be found is told when it is taken. */
function labelsTo(host: InventoryHost, map: RouteMap): readonly string[] {
  try {
    return routeTo(host, map).map(({ label }) => label);
  } catch (error) {
    if (error instanceof P4Error) return [host.name];
    throw error;
  }
}

/**
 * @throws HOST_UNREACHABLE, HOST_KEY_UNKNOWN, HOST_KEY_NOT_ACCEPTED, HOST_KEY_CHANGED, HOST_KEY_REVOKED,
 *   SSH_KEY_UNUSABLE, SSH_CONFIG_UNUSABLE, SECRET_NOT_GIVEN, CANCELLED
 */
export async function openSession(host: InventoryHost, context: SshContext): Promise<Session> {
  const { map, passwords } = context;
  const logins = loginsTo(host, map);
  const route = routeOf(logins, map);
  const { link, release } = await openRoute(route, context);
  const become = absoluteBecome(host.connection.become, map);
  return new RemoteSession({
    host: host.name,
    link,
    way: route.length > 1 ? logins : null,
    become,
    passwords,
    release,
  });
}

/** What a link over a route is opened with. */
export type LinkContext = Pick<SshContext, 'pool' | 'trust' | 'keys' | 'signal'>;

/** A link to the last machine of a route. */
export interface RouteEnd {
  readonly link: Link;
  /** Lets go of the machines before; to be called once, after the link has ended. */
  readonly release: () => Promise<void>;
}

/** @throws as `openSession` does */
export async function openRoute(route: readonly Hop[], context: LinkContext): Promise<RouteEnd> {
  const { pool, trust, keys, signal } = context;
  const hop = present(route.at(-1), 'a route ends at its host');
  const way = await pool.take(route.slice(0, -1), { trust, keys, signal });
  try {
    return { link: await openLink({ hop, over: way.over, trust, keys, signal }), release: way.release };
  } catch (error) {
    await way.release();
    throw error;
  }
}

/**
 * Opens a session on each host, in the order given, some at once. Hosts that fail do not stop the others; a signal does.
 *
 * @param forks at most so many at once
 */
export async function openSessions(
  hosts: readonly InventoryHost[],
  context: SshContext,
  forks = limits.sshForks,
): Promise<readonly OpenedHost[]> {
  const opened = new Map<InventoryHost, OpenedHost>();
  const left = hosts.values();
  const work = async (): Promise<void> => {
    for (const host of left) opened.set(host, await openedHost(host, context));
  };
  await Promise.all(Array.from({ length: Math.min(forks, hosts.length) }, work));
  return hosts.map((host) => present(opened.get(host), 'every host was tried'));
}

/**
 * Finds out whether the host's user becomes root, before anything else is tried.
 * @throws BECOME_NEEDS_PASSWORD, BECOME_REFUSED, HOST_LOST, HOST_TIMEOUT, CANCELLED
 */
export async function checkPrivileges(session: Session, signal?: AbortSignal): Promise<void> {
  const result = await session.run({ script: 'id -u', ...(signal === undefined ? {} : { signal }) });
  const id = result.stdout.toString('latin1').trim();
  if (result.status === 0 && id === '0') return;
  const why = `the user has the id ${id === '' ? 'that nobody knows' : id}; say \`become: sudo\` where it is not root itself`;
  throw new P4Error('BECOME_REFUSED', { host: session.host, why });
}

async function openedHost(host: InventoryHost, context: SshContext): Promise<OpenedHost> {
  try {
    return { kind: 'open', host, session: await openSession(host, context) };
  } catch (error) {
    if (error instanceof P4Error) return { kind: 'failed', host, error };
    throw error;
  }
}

function absoluteBecome(become: Become, map: RouteMap): Become {
  if (become.kind === 'none' || become.password.kind !== 'file') return become;
  const from = { home: map.operator.home, folder: map.inventoryFolder };
  return { kind: 'sudo', password: { kind: 'file', path: absolutePath(become.password.path, from) } };
}
