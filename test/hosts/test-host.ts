/** One host of a fleet, as a test handles it: from the outside, with root's rights and without ssh. */
import assert from 'node:assert/strict';
import { writeFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { attempt, run, type CommandOptions } from './command.ts';
import { Machine, type MachineOptions, type SmallDisk } from './machine.ts';
import type { NetworkNamespace } from './namespace.ts';
import type { Family, HostLink } from './network-plan.ts';
import type { Switchboard } from './switchboard.ts';

export interface HostParts {
  readonly name: string;
  readonly machine: Omit<MachineOptions, 'disks'>;
  readonly links: readonly HostLink[];
  readonly switchboard: Switchboard;
  readonly namespace: NetworkNamespace;
  readonly hostKey: string;
}

export interface ExecOutcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface FileRights {
  /** Octal; 644 if absent. */
  readonly mode?: string;
  /** `root` if absent. */
  readonly owner?: string;
  /** `root` if absent. */
  readonly group?: string;
}

/** What a script starts with, whoever runs the tests. */
const environment = ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/root', 'LANG=C.UTF-8'];
/** A host that does not go down by then is killed, as by its power switch. */
const shutdownMs = 30_000;

export class TestHost {
  readonly name: string;
  readonly #parts: HostParts;
  readonly #disks: SmallDisk[] = [];
  /** The present boot, or the last one. */
  #machine: Machine | null = null;
  #hostKey: string;

  constructor(parts: HostParts) {
    this.name = parts.name;
    this.#parts = parts;
    this.#hostKey = parts.hostKey;
  }

  /** Its public ssh key as two words, type and key. */
  get hostKey(): string {
    return this.#hostKey;
  }

  /** Its address in a network: IPv4 where there is one, unless IPv6 is asked for. */
  address(network: string, family?: Family): string {
    const { addresses } = this.#link(network);
    const found =
      family === undefined
        ? (addresses.find((one) => one.family === 'ipv4') ?? addresses[0])
        : addresses.find((one) => one.family === family);
    assert.ok(found !== undefined, `${this.name} has such an address in ${network}`);
    return found.address;
  }

  /** Switches it on; returns when it has started all it starts at boot. */
  async boot(): Promise<void> {
    const machine = this.#switchOn();
    await machine.booted;
  }

  /** Runs a script for `sh` as root, in `/root`. Fails when the host is off. */
  async exec(script: string, options: CommandOptions = {}): Promise<ExecOutcome> {
    const { status, stdout, stderr } = await attempt(await this.#shell(script), options);
    return { status, stdout: stdout.toString('utf8'), stderr };
  }

  /** As `exec`; what the script wrote to standard output. Fails when its status is not 0. */
  async run(script: string, options: CommandOptions = {}): Promise<string> {
    return run(await this.#shell(script), options);
  }

  /** Runs a program of the test machine in the host's network, such as iptables. */
  async inNetwork(words: readonly string[]): Promise<string> {
    return this.#parts.namespace.run(words);
  }

  /** Writes a file, and the folders it lies in. */
  async putFile(path: string, content: string | Uint8Array, rights: FileRights = {}): Promise<void> {
    const { mode = '644', owner = 'root', group = 'root' } = rights;
    const made = `install -D -m ${mode} -o ${owner} -g ${group} /dev/null ${quoted(path)}`;
    await this.run(`${made} && cat > ${quoted(path)}`, { input: content });
  }

  async readFile(path: string): Promise<Buffer> {
    const { status, stdout, stderr } = await attempt(await this.#shell(`cat ${quoted(path)}`));
    if (status !== 0) throw new Error(`${this.name}: ${stderr}`);
    return stdout;
  }

  /** Pulls its cable to a network out, or plugs it in. It keeps its addresses. */
  async setLink(network: string, state: 'up' | 'down'): Promise<void> {
    await this.#parts.switchboard.setLink(this.#link(network), state);
  }

  /** Has it reboot; returns when it is up again. One that reboots by itself comes up by itself: see `awaitReboot`. */
  async reboot(): Promise<void> {
    await Promise.all([this.awaitReboot(), this.#ask('systemctl reboot')]);
  }

  /** Waits until the present boot has ended in a reboot, and the next one is done. Ask before it is caused. */
  async awaitReboot(): Promise<void> {
    const machine = this.#on();
    const end = await withDeadline(machine.ended, `${this.name} goes down`);
    assert.equal(end, 'reboot', `${this.name} reboots`);
    await this.#on().booted;
  }

  /** Has it shut down; it stays off until `boot`. */
  async powerOff(): Promise<void> {
    const machine = this.#on();
    await Promise.all([withDeadline(machine.ended, `${this.name} goes down`), this.#ask('systemctl poweroff')]);
  }

  /** Takes its power away: it writes nothing any more. It stays off until `boot`. */
  async cutPower(): Promise<void> {
    await this.#machine?.kill();
  }

  /** Gives it another ssh key, as a host that was set up anew. */
  async changeHostKey(): Promise<void> {
    const path = '/etc/ssh/ssh_host_ed25519_key';
    await this.run(
      `rm ${path} ${path}.pub && ssh-keygen -q -t ed25519 -N '' -C '' -f ${path} && systemctl restart ssh`,
    );
    this.#hostKey = (await this.readFile(`${path}.pub`)).toString('utf8').trim();
  }

  /**
   * Mounts a new ext4 file system of `bytes` (at least 1 MiB) on a folder, whose owner and mode it takes over and whose
   * files it hides. It stays there over reboots.
   */
  async mountSmall(path: string, bytes: number): Promise<void> {
    const image = join(this.#parts.machine.folder, `disk-${this.#disks.length}`);
    await writeFile(image, '');
    await truncate(image, bytes);
    await run(['mkfs.ext4', '-q', '-m', '0', image]);
    await this.run(`mkdir -p ${quoted(path)}`);
    const leader = await this.#on().booted;
    // The device is looked up here and given to the host, which has no devices of its own.
    const script = `
      set -e
      owner=$(nsenter --target=$1 --mount stat --format=%u:%g "$3") mode=$(nsenter --target=$1 --mount stat --format=%a "$3")
      device=$(losetup --find --show "$2")
      trap 'losetup --detach "$device"' EXIT
      numbers=$(stat --format='0x%t 0x%T' "$device")
      nsenter --target=$1 --mount sh -c '[ -e "$1" ] || mknod "$1" b $(($2)) $(($3))' sh "$device" $numbers
      nsenter --target=$1 --mount mount -t ext4 "$device" "$3"
      nsenter --target=$1 --mount sh -c 'chown "$2" "$1"; chmod "$3" "$1"; rmdir "$1/lost+found"' sh "$3" "$owner" "$mode"`;
    await run(['sh', '-c', script, 'sh', String(leader), image, path]);
    this.#disks.push({ image, path });
  }

  #switchOn(): Machine {
    const machine = new Machine({ ...this.#parts.machine, disks: this.#disks });
    this.#machine = machine;
    void machine.ended.then(
      (end) => {
        if (end === 'reboot' && this.#machine === machine) this.#switchOn();
      },
      // It was never started, which `booted` says.
      () => undefined,
    );
    return machine;
  }

  /** Runs what may end with the host; whether it went well is seen from the host. */
  async #ask(script: string): Promise<void> {
    await this.exec(script).catch(() => undefined);
  }

  #on(): Machine {
    assert.ok(this.#machine !== null, `${this.name} was switched on`);
    return this.#machine;
  }

  async #shell(script: string): Promise<[string, ...string[]]> {
    const leader = await this.#on().booted;
    const inside = ['env', '--ignore-environment', '--chdir=/root', ...environment, 'sh', '-c', script];
    return ['nsenter', `--target=${leader}`, '--all', ...inside];
  }

  #link(network: string): HostLink {
    const found = this.#parts.links.find((link) => link.network === network);
    assert.ok(found !== undefined, `${this.name} is in the network ${network}`);
    return found;
  }
}

async function withDeadline<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`not within ${shutdownMs} ms: ${what}`));
    }, shutdownMs);
  });
  try {
    return await Promise.race([promise, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
