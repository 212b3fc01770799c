/**
 * The way to a host: every machine that ssh has to pass, with what is needed to log in there.
 *
 * What the inventory says comes first; the operator's ssh configuration fills in what it leaves open. An inventory's
 * port 22 counts as left open.
 */
import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { Inventory, InventoryHost, SshKey, SshTarget } from '../../protocol/inventory.ts';
import { limits } from '../../protocol/limits.ts';
import { knownHostsName } from './known-hosts.ts';
import { absolutePath, type ConfiguredHost, type Operator } from './operator-config.ts';
import type { SshLogin, SshWay } from './ssh-way.ts';

/** One login on the way. */
export interface Hop {
  /** What people call it: the host's name in the inventory, the address of any other machine. */
  readonly label: string;
  readonly address: string;
  readonly port: number;
  readonly user: string;
  readonly keys: KeyChoice;
  /** As `knownHostsName` gives it. */
  readonly knownAs: string;
  /** Absolute paths; the state folder's own is not among them. */
  readonly knownHostsFiles: readonly string[];
}

/** Which keys are offered. */
export interface KeyChoice {
  /** Private keys, absolute paths. */
  readonly files: readonly string[];
  /** Whether a file that is not there is a fault; else it is passed over. */
  readonly isRequired: boolean;
  /** Whether nothing but these files' keys is offered. The agent may still sign for them. */
  readonly isOnlyFiles: boolean;
  /** Socket of the ssh agent. */
  readonly agentSocket: string | null;
}

/** What the operator's own ssh configuration says. */
export interface RouteRules {
  readonly operator: Operator;
  readonly configured: (alias: string) => ConfiguredHost;
}

/** What a route is found with. */
export interface RouteMap extends RouteRules {
  readonly inventory: Inventory;
  /** Absolute path; relative paths in the inventory start there. */
  readonly inventoryFolder: string;
}

const defaultKeyNames = ['id_ed25519', 'id_ecdsa', 'id_rsa'];

/**
 * The machines in the order in which they are passed; the last one is the host.
 * @throws SSH_CONFIG_UNUSABLE
 */
export const routeTo = (host: InventoryHost, map: RouteMap): readonly Hop[] => routeOf(loginsTo(host, map), map);

/**
 * The logins that the inventory names, the host's own last.
 * @throws SSH_CONFIG_UNUSABLE where they are too many
 */
export const loginsTo = (host: InventoryHost, map: RouteMap): SshWay => inventoryLogins(host, map, limits.sshHops);

/**
 * As `routeTo`, from the logins: what the configuration says of them is filled in, with jumps before the first.
 * @param logins at least one
 * @throws SSH_CONFIG_UNUSABLE
 */
export function routeOf(logins: SshWay, rules: RouteRules): readonly Hop[] {
  const [first, last] = [present(logins[0], 'a way has a login'), present(logins.at(-1), 'a way has a login')];
  const before = configuredJumps(first.address, rules, limits.sshHops - logins.length);
  const route = [...before, ...logins.map((login) => hopOf(login, rules))];
  const loop = route.find((hop, index) => route.some((other, at) => at < index && isSamePlace(hop, other)));
  if (loop !== undefined) throw circle(last.label);
  return route;
}

/** Text under which the connection over these hops can be shared. */
export const routeKey = (hops: readonly Hop[]): string =>
  JSON.stringify(hops.map(({ address, port, user, keys, knownAs }) => [address, port, user, keys, knownAs]));

function inventoryLogins(host: InventoryHost, map: RouteMap, left: number): SshWay {
  const { connection, name } = host;
  const { jump } = connection;
  if (left <= 0) throw circle(name);
  const last = loginOf(name, connection, map);
  if (jump === null) return [last];
  switch (jump.kind) {
    case 'host': {
      const over = map.inventory.hosts.find((other) => other.name === jump.host);
      return [...inventoryLogins(present(over, 'a jump host of a checked inventory is there'), map, left - 1), last];
    }
    case 'machine':
      if (left <= 1) throw circle(name);
      return [loginOf(jump.target.address, jump.target, map), last];
  }
}

function loginOf(label: string, { address, port, user, key }: SshTarget, map: RouteMap): SshLogin {
  const from = { home: map.operator.home, folder: map.inventoryFolder };
  const absolute: SshKey = key.kind === 'file' ? { kind: 'file', path: absolutePath(key.path, from) } : key;
  return { label, address, port, user, key: absolute };
}

/** The hops of a `ProxyJump`; the first may have one of its own. */
function configuredJumps(alias: string, rules: RouteRules, left: number): readonly Hop[] {
  const { proxyJump } = rules.configured(alias);
  if (proxyJump === null) return [];
  if (left <= 0) throw circle(alias);
  const targets = proxyJump.split(',').map((word) => jumpTarget(word.trim(), alias));
  const before = configuredJumps(present(targets[0], 'a split text has a part').address, rules, left - 1);
  return [...before, ...targets.map((target) => hopOf({ label: target.address, ...target }, rules))];
}

function jumpTarget(word: string, alias: string): SshTarget {
  const found =
    /^(?:ssh:\/\/)?(?:([^@]+)@)?(?:\[([^\]]+)\]|([^:@[\]]+|[0-9a-fA-F:]+:[0-9a-fA-F:]*))(?::(\d{1,5}))?\/?$/.exec(word);
  const address = found?.[2] ?? found?.[3];
  if (address === undefined) throw new P4Error('SSH_CONFIG_UNUSABLE', { host: alias, what: `ProxyJump ${word}` });
  return {
    address,
    port: found?.[4] === undefined ? 22 : Number(found[4]),
    user: found?.[1] ?? null,
    key: { kind: 'agent' },
  };
}

function hopOf(login: SshLogin, rules: RouteRules): Hop {
  const { label } = login;
  const configured = rules.configured(login.address);
  const { home, user } = rules.operator;
  const port = login.port === 22 ? (configured.port ?? 22) : login.port;
  const { hostKeyAlias, hostName } = configured;
  const userFiles = configured.userKnownHostsFiles;
  const globalFiles = configured.globalKnownHostsFiles;
  return {
    label,
    address: hostName,
    port,
    user: login.user ?? configured.user ?? user,
    keys: keyChoice(login.key, configured, rules.operator),
    knownAs: hostKeyAlias === null ? knownHostsName(hostName, port) : hostKeyAlias.toLowerCase(),
    knownHostsFiles: [
      ...(userFiles.length > 0 ? userFiles : [`${home}/.ssh/known_hosts`, `${home}/.ssh/known_hosts2`]),
      ...(globalFiles.length > 0 ? globalFiles : ['/etc/ssh/ssh_known_hosts', '/etc/ssh/ssh_known_hosts2']),
    ],
  };
}

function keyChoice(key: SshKey, configured: ConfiguredHost, { home, environment }: Operator): KeyChoice {
  const agentSocket = socketOf(configured, environment['SSH_AUTH_SOCK']);
  switch (key.kind) {
    case 'file':
      return {
        files: [key.path],
        isRequired: true,
        isOnlyFiles: true,
        agentSocket,
      };
    case 'agent': {
      const { identityFiles, isIdentitiesOnly } = configured;
      const defaults = defaultKeyNames.map((name) => `${home}/.ssh/${name}`);
      const files = identityFiles.length > 0 ? identityFiles : defaults;
      return { files, isRequired: false, isOnlyFiles: isIdentitiesOnly, agentSocket };
    }
  }
}

function socketOf({ agent }: ConfiguredHost, usual: string | undefined): string | null {
  switch (agent.kind) {
    case 'none':
      return null;
    case 'socket':
      return agent.path;
    case 'default':
      return usual === undefined || usual === '' ? null : usual;
  }
}

const isSamePlace = (one: Hop, other: Hop): boolean =>
  one.address === other.address && one.port === other.port && one.user === other.user;

const circle = (host: string): P4Error =>
  new P4Error('SSH_CONFIG_UNUSABLE', { host, what: 'jumps that lead in a circle, or over too many machines' });
