/**
 * A fleet of real hosts on this machine, for tests: each boots a Debian system with its own systemd, sshd, processes, files
 * and network; only the kernel is shared. Networks between them have the speed and the faults a test asks for.
 *
 * Needs root, Linux and the Debian packages of `test/run/debian-packages.ts`. Processes, mounts, interfaces and namespaces
 * end with the process that started the fleet, however it ends; `stop` removes the rest, folders and control groups, and the
 * next start removes those of a fleet that was never stopped.
 */
import assert from 'node:assert/strict';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { baseImage, opsPassword, type BaseImage } from './base-image.ts';
import { ControlGroups, removeAbandonedGroups } from './control-groups.ts';
import { writeHostFiles, type Sudo } from './host-files.ts';
import { NetworkNamespace } from './namespace.ts';
import { planNetworks, takenSubnets, type NetworkPlan, type NetworkSpec } from './network-plan.ts';
import { isAbandoned, newOwnedName } from './owner.ts';
import { makeOperatorKeys, type OperatorKeys } from './ssh-keys.ts';
import { Switchboard } from './switchboard.ts';
import { TestHost } from './test-host.ts';

export interface HostSpec {
  /** Its host name; in lower case, digits and hyphens. */
  readonly name: string;
  /** Names of its networks; all if absent. */
  readonly networks?: readonly string[];
  /** How its user `ops` becomes root; `nopasswd` if absent. */
  readonly sudo?: Sudo;
  /** Whether polkit is installed; not if absent. */
  readonly hasPolkit?: boolean;
}

export interface FleetSpec {
  readonly hosts: readonly HostSpec[];
  readonly networks: readonly NetworkSpec[];
  /** Whether every host has a bridge `docker0` with the address that all of them have; so if absent. */
  readonly hasTrap?: boolean;
}

export class TestHosts {
  /** How long it took to make base images that were not there. */
  readonly imagesMadeInMs: number;
  readonly #name: string;
  readonly #folder: string;
  readonly #keys: OperatorKeys;
  readonly #networks: readonly NetworkPlan[];
  readonly #groups: ControlGroups;
  readonly #hosts = new Map<string, TestHost>();
  readonly #namespaces: NetworkNamespace[] = [];
  readonly #images: ReadonlyMap<boolean, BaseImage>;
  #switchboard: Switchboard | null = null;
  #stopped: Promise<void> | null = null;

  private constructor(parts: {
    readonly name: string;
    readonly folder: string;
    readonly keys: OperatorKeys;
    readonly networks: readonly NetworkPlan[];
    readonly images: ReadonlyMap<boolean, BaseImage>;
  }) {
    this.#name = parts.name;
    this.#folder = parts.folder;
    this.#keys = parts.keys;
    this.#networks = parts.networks;
    this.#images = parts.images;
    this.#groups = new ControlGroups(parts.name);
    this.imagesMadeInMs = [...parts.images.values()].reduce((sum, { madeInMs }) => sum + madeInMs, 0);
  }

  /** Boots the hosts, all at once; returns when each has started all it starts at boot. Nothing is left when it fails. */
  static async start(spec: FleetSpec): Promise<TestHosts> {
    assert.equal(process.getuid?.(), 0, 'only root can start test hosts: run the tests as root');
    const names = spec.hosts.map((host) => host.name);
    assert.equal(new Set(names).size, names.length, 'hosts have names of their own');
    await removeAbandonedFleets();
    const images = new Map<boolean, BaseImage>();
    for (const hasPolkit of new Set(spec.hosts.map((host) => host.hasPolkit === true))) {
      images.set(hasPolkit, await baseImage(hasPolkit ? ['polkitd'] : []));
    }
    const { name, id } = newOwnedName();
    const folder = join(tmpdir(), name);
    await mkdir(folder, { mode: 0o700 });
    try {
      const all = spec.networks.map((network) => network.name);
      const hosts = spec.hosts.map((host) => ({ name: host.name, networks: host.networks ?? all }));
      const networks = planNetworks({ id, hosts, networks: spec.networks, taken: takenSubnets(ownAddresses()) });
      const fleet = new TestHosts({ name, folder, keys: await makeOperatorKeys(folder), networks, images });
      await fleet.#boot(spec);
      return fleet;
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  host(name: string): TestHost {
    const found = this.#hosts.get(name);
    assert.ok(found !== undefined, `the fleet has a host ${name}`);
    return found;
  }

  /** Path of the private key that `ops` and root of every host accept. */
  get key(): string {
    return this.#keys.key;
  }

  /** The same key under a passphrase. */
  get encryptedKey(): OperatorKeys['encryptedKey'] {
    return this.#keys.encryptedKey;
  }

  /** What sudo wants from `ops` on hosts that ask for a password. */
  get opsPassword(): string {
    return opsPassword;
  }

  /** A folder for files of the test, removed by `stop`. */
  get folder(): string {
    return this.#folder;
  }

  /** The text of a `known_hosts` file: every address of every host, with its key as it is now. */
  knownHosts(): string {
    const lines = this.#networks.flatMap(({ links }) =>
      [...links].flatMap(([name, { addresses }]) =>
        addresses.map(({ address }) => `${address} ${this.host(name).hostKey}\n`),
      ),
    );
    return lines.join('');
  }

  /** Removes everything but the base images. A second call waits for the first. */
  stop(): Promise<void> {
    this.#stopped ??= this.#remove();
    return this.#stopped;
  }

  async #boot(spec: FleetSpec): Promise<void> {
    try {
      const switchboard = await Switchboard.make(this.#networks);
      this.#switchboard = switchboard;
      const hasTrap = spec.hasTrap !== false;
      // All have to be done with before any is removed.
      const boots = await Promise.allSettled(spec.hosts.map((host) => this.#bootHost({ host, switchboard, hasTrap })));
      for (const boot of boots) if (boot.status === 'rejected') throw boot.reason;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async #bootHost(options: {
    readonly host: HostSpec;
    readonly switchboard: Switchboard;
    readonly hasTrap: boolean;
  }): Promise<void> {
    const { host: spec, switchboard, hasTrap } = options;
    const { name } = spec;
    const image = this.#images.get(spec.hasPolkit === true);
    assert.ok(image !== undefined);
    const namespace = await NetworkNamespace.make();
    this.#namespaces.push(namespace);
    await switchboard.connect(name, namespace);
    if (hasTrap) await switchboard.layTrap(namespace);
    const folder = join(this.#folder, name);
    for (const part of ['upper', 'work', 'root']) await mkdir(join(folder, part), { recursive: true });
    const publicKey = this.#keys.publicKey;
    const hostKey = await writeHostFiles({
      folder: join(folder, 'upper'),
      name,
      publicKey,
      sudo: spec.sudo ?? 'nopasswd',
    });
    const machine = {
      folder,
      machineName: `${this.#name}-${name}`,
      layers: image.layers,
      networkPid: namespace.pid,
      controlGroups: await this.#groups.add(name),
    };
    const links = this.#networks.flatMap((network) => network.links.get(name) ?? []);
    const host = new TestHost({ name, machine, links, switchboard, namespace, hostKey });
    this.#hosts.set(name, host);
    await host.boot();
    const state = await host.exec('systemctl is-system-running; systemctl --failed --plain --no-legend');
    assert.equal(state.stdout, 'running\n', `${name} is well`);
  }

  async #remove(): Promise<void> {
    await Promise.all([...this.#hosts.values()].map((host) => host.cutPower()));
    await Promise.all(this.#namespaces.map((namespace) => namespace.remove()));
    await this.#switchboard?.remove();
    await this.#groups.remove();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Removes what is left of fleets whose process ended without stopping them. */
export async function removeAbandonedFleets(): Promise<void> {
  await removeAbandonedGroups();
  for (const name of await readdir(tmpdir())) {
    if (isAbandoned(name)) await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}

const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address));
