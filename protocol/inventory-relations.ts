/**
 * What must hold between the parts of an inventory: names that lead somewhere, hosts that are told apart.
 *
 * Works on what is legible, so that one wrong value does not hide another's fault. A fault of a setting that was handed
 * down stands where the setting was written.
 */
import { cpuRangesOf } from './cpu-range.ts';
import type { PlainDocument } from './document.ts';
import { shownValue, type Fault } from './fault.ts';
import { inventoryDefaults } from './inventory-defaults.ts';
import { canonicalIp, isLoopback } from './ip-address.ts';
import { pointerTo } from './json-pointer.ts';
import { isRecord, itemsOf, memberOf } from './plain-value.ts';

export function relationFaults(document: PlainDocument): readonly Fault[] {
  const file = new Settings(document.value);
  const found = [
    ...groupTroubles(file),
    ...rivalTroubles(file),
    ...jumpTroubles(file),
    ...monitoringTroubles(file),
    ...twinTroubles(file),
    ...advertiseTroubles(file),
    ...portTroubles(file),
    ...cpuTroubles(file),
  ];
  return found.map((trouble) => ({ ...document.locate(trouble.path), ...trouble }));
}

type Trouble = Pick<Fault, 'path' | 'found' | 'expected'>;

/** A setting's value, and where it was written. */
interface Setting {
  readonly value: unknown;
  readonly path: string;
}

/** The settings that are handed down, each as the keys that lead to it. */
const handedDownSettings = [
  ['port'],
  ['user'],
  ['key'],
  ['become'],
  ['jump'],
  ['variables', 'advertise'],
  ['variables', 'gpus'],
  ['variables', 'cpus'],
  ['variables', 'stateFolder'],
  ['variables', 'ports', 'agent'],
  ['variables', 'ports', 'metrics'],
  ['variables', 'ports', 'bridge'],
] as const;

/** An inventory file's value, looked into level by level. */
class Settings {
  readonly value: unknown;
  readonly hosts: readonly string[];

  constructor(value: unknown) {
    this.value = value;
    this.hosts = namesIn(memberOf(value, 'hosts'));
  }

  at(...keys: readonly string[]): Setting | null {
    const value = keys.reduce(memberOf, this.value);
    return value === undefined ? null : { value, path: pointerTo(...keys) };
  }

  groupsOf(host: string): readonly string[] {
    const groups = itemsOf(this.at('hosts', host, 'groups')?.value);
    return groups.filter((group) => typeof group === 'string');
  }

  /** As it holds for a host: its own, else its groups', else the fleet's. */
  of(host: string, ...keys: readonly string[]): Setting | null {
    const own = this.at('hosts', host, ...keys);
    if (own !== null) return own;
    const levels = [...this.groupsOf(host).map((group) => ['groups', group]), ['fleet']];
    for (const level of levels) {
      const setting = this.at(...level, ...keys);
      if (setting !== null) return setting;
    }
    return null;
  }
}

const namesIn = (value: unknown): readonly string[] => (isRecord(value) ? Object.keys(value) : []);

/** Groups that hosts name exist. */
function groupTroubles(file: Settings): readonly Trouble[] {
  const groups = namesIn(file.at('groups')?.value);
  const expected = groups.length === 0 ? 'a group, of which there is none' : `one of the groups ${groups.join(', ')}`;
  return file.hosts.flatMap((host) =>
    itemsOf(file.at('hosts', host, 'groups')?.value).flatMap((group, index): readonly Trouble[] => {
      if (typeof group !== 'string' || groups.includes(group)) return [];
      return [
        { path: pointerTo('hosts', host, 'groups', index), found: `the unknown group ${shownValue(group)}`, expected },
      ];
    }),
  );
}

/** Two groups of one host do not say different things of it, unless the host has its own word. */
const rivalTroubles = (file: Settings): readonly Trouble[] =>
  file.hosts.flatMap((host) =>
    handedDownSettings.flatMap((keys): readonly Trouble[] => {
      if (file.at('hosts', host, ...keys) !== null) return [];
      const said = file.groupsOf(host).flatMap((group) => {
        const setting = file.at('groups', group, ...keys);
        return setting === null ? [] : [{ group, text: JSON.stringify(setting.value) }];
      });
      const [first, ...others] = said;
      const rival = others.find(({ text }) => text !== first?.text);
      if (first === undefined || rival === undefined) return [];
      const setting = keys.join('.');
      const found = `${setting} from both ${first.group} and ${rival.group}, which differ`;
      return [{ path: pointerTo('hosts', host, 'groups'), found, expected: `${setting} at the host itself` }];
    }),
  );

/** A jump host exists, and the way through it comes to an end. */
function jumpTroubles(file: Settings): readonly Trouble[] {
  return file.hosts.flatMap((host): readonly Trouble[] => {
    const jump = jumpHostOf(file, host);
    if (jump === null) return [];
    if (!file.hosts.includes(jump.host)) {
      const expected = '`none`, a host of the inventory, or { address: … } of another machine';
      return [{ path: jump.path, found: `the unknown host ${shownValue(jump.host)}`, expected }];
    }
    const way = [host];
    for (let next: string | undefined = jump.host; next !== undefined; next = jumpHostOf(file, next)?.host) {
      const isLoop = next === host;
      way.push(next);
      if (isLoop)
        return [{ path: jump.path, found: `a way that goes ${way.join(' → ')}`, expected: 'a way that ends' }];
      // A loop that does not come by this host is told at those it comes by.
      if (way.length > file.hosts.length) return [];
    }
    return [];
  });
}

function jumpHostOf(file: Settings, host: string): { readonly host: string; readonly path: string } | null {
  const jump = file.of(host, 'jump');
  return typeof jump?.value !== 'string' || jump.value === 'none' ? null : { host: jump.value, path: jump.path };
}

function monitoringTroubles(file: Settings): readonly Trouble[] {
  const whole = file.at('monitoring');
  const setting = typeof whole?.value === 'string' ? whole : file.at('monitoring', 'host');
  if (typeof setting?.value !== 'string' || file.hosts.includes(setting.value)) return [];
  const expected = `one of the hosts ${file.hosts.join(', ')}`;
  return [{ path: setting.path, found: `the unknown host ${shownValue(setting.value)}`, expected }];
}

/** No two hosts lead ssh to one machine. */
const twinTroubles = (file: Settings): readonly Trouble[] =>
  repeated(file, (host) => {
    const address = file.at('hosts', host, 'address');
    if (typeof address?.value !== 'string') return null;
    const port = file.of(host, 'port')?.value ?? inventoryDefaults.sshPort;
    const way = JSON.stringify([canonicalIp(address.value), port, file.of(host, 'jump')?.value ?? 'none']);
    return { setting: address, identity: way, expected: 'another address, port or jump host for each host' };
  });

/** An advertised address is one host's, and others can reach it (A2). */
function advertiseTroubles(file: Settings): readonly Trouble[] {
  const twins = repeated(file, (host) => {
    const address = advertisedAddress(file, host);
    if (typeof address?.value !== 'string') return null;
    return { setting: address, identity: canonicalIp(address.value), expected: 'an advertised address of its own' };
  });
  const unreachable = file.hosts.flatMap((host): readonly Trouble[] => {
    const address = advertisedAddress(file, host);
    if (typeof address?.value !== 'string' || !isLoopback(address.value) || file.hosts.length < 2) return [];
    const expected = 'an address that the other hosts can reach';
    return [{ path: address.path, found: shownValue(address.value), expected }];
  });
  return [...twins, ...unreachable];
}

/** The address a host is told to advertise; one that is told an interface, say, does not inherit one. */
function advertisedAddress(file: Settings, host: string): Setting | null {
  const advertise = file.of(host, 'variables', 'advertise');
  const value = memberOf(advertise?.value, 'address');
  return advertise === null || value === undefined ? null : { value, path: advertise.path + pointerTo('address') };
}

interface Identified {
  readonly setting: Setting;
  readonly identity: string;
  readonly expected: string;
}

/** Trouble for each host whose identity an earlier host has already. */
function repeated(file: Settings, identify: (host: string) => Identified | null): readonly Trouble[] {
  const owners = new Map<string, string>();
  return file.hosts.flatMap((host): readonly Trouble[] => {
    const identified = identify(host);
    if (identified === null) return [];
    const { setting, identity, expected } = identified;
    const owner = owners.get(identity);
    if (owner === undefined) owners.set(identity, host);
    if (owner === undefined) return [];
    return [{ path: setting.path, found: `${shownValue(setting.value)} for both ${owner} and ${host}`, expected }];
  });
}

/** The listeners of one host have ports of their own: p4's, Prometheus where it runs, and sshd. */
const portTroubles = (file: Settings): readonly Trouble[] =>
  file.hosts.flatMap((host) => {
    const taken = new Map<unknown, Listener>();
    return listenersOf(file, host).flatMap((listener): readonly Trouble[] => {
      const owner = taken.get(listener.port);
      taken.set(listener.port, listener);
      if (owner === undefined) return [];
      const path = listener.setting?.path ?? owner.setting?.path ?? pointerTo('hosts', host);
      const found = `port ${shownValue(listener.port)} for both ${owner.name} and ${listener.name}`;
      return [{ path, found, expected: 'a port for each' }];
    });
  });

interface Listener {
  readonly name: string;
  readonly port: unknown;
  /** Where the port was written, `null` for a default. */
  readonly setting: Setting | null;
}

function listenersOf(file: Settings, host: string): readonly Listener[] {
  const listener = (name: string, setting: Setting | null, otherwise: number): Listener => ({
    ...{ name, setting },
    port: setting?.value ?? otherwise,
  });
  const watcher = file.at('monitoring')?.value;
  const isWatcher = watcher === host || memberOf(watcher, 'host') === host;
  return [
    listener('ssh', file.of(host, 'port'), inventoryDefaults.sshPort),
    ...(isWatcher ? [listener('Prometheus', file.at('monitoring', 'port'), inventoryDefaults.prometheusPort)] : []),
    ...(['agent', 'metrics', 'bridge'] as const).map((name) =>
      listener(name, file.of(host, 'variables', 'ports', name), inventoryDefaults.ports[name]),
    ),
  ];
}

const cpuTroubles = (file: Settings): readonly Trouble[] =>
  file.hosts.flatMap((host): readonly Trouble[] => {
    const setting = file.of(host, 'variables', 'cpus');
    // Anything but digits is the schema's to tell.
    if (typeof setting?.value !== 'string' || !/^[0-9,-]+$/.test(setting.value)) return [];
    const reading = cpuRangesOf(setting.value);
    return reading.kind === 'ranges' ? [] : [{ path: setting.path, found: reading.found, expected: reading.expected }];
  });
