/**
 * One boot of a host: systemd in namespaces of its own, from power on to power off.
 *
 * The outermost process is killed by the kernel when this one ends, however it ends; the process below it is the first of a
 * process namespace, and the host's mounts are in a mount namespace that only they are in. So nothing of a boot outlives
 * this process.
 */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../fixture/eventually.ts';
import { attempt } from './command.ts';

export interface MachineOptions {
  /** Holds `upper`, `work`, `root`, and `console.log`, to which a boot's console is appended. */
  readonly folder: string;
  /** Unique on this machine. */
  readonly machineName: string;
  /** Below the host's own files, the topmost first. */
  readonly layers: readonly string[];
  /** Who holds the network namespace. */
  readonly networkPid: number;
  readonly controlGroups: readonly string[];
  readonly disks: readonly SmallDisk[];
}

export interface SmallDisk {
  /** Path of the file that is the disk. */
  readonly image: string;
  /** Where the host has it. */
  readonly path: string;
}

/** How a boot ended: the host was rebooted, switched off, or killed from here. */
export type MachineEnd = 'reboot' | 'off' | 'killed';

/** What systemd-nspawn exits with when the system inside rebooted, and somebody else should start it again. */
const rebootStatus = 133;
const bootDeadlineMs = 60_000;

/** Arguments: folder, layers, machine name, count of control groups, these, then pairs of disk image and path. */
const bootScript = `
set -e
folder=$1 layers=$2 machine=$3 groups=$4; shift 4
while [ "$groups" -gt 0 ]; do echo 0 > "$1/cgroup.procs"; shift; groups=$((groups - 1)); done
mount -t overlay overlay -o "lowerdir=$layers,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/nspawn
count=0 binds=
while [ $# -gt 0 ]; do
  mkdir "/run/disk$count"
  mount -o loop "$1" "/run/disk$count"
  binds="$binds --bind=/run/disk$count:$2"
  count=$((count + 1)); shift 2
done
exec systemd-nspawn --quiet --directory="$folder/root" --machine="$machine" --boot --register=no --keep-unit \\
  --capability=CAP_NET_ADMIN --console=pipe --link-journal=no --resolv-conf=off --timezone=off $binds
`;

export class Machine {
  readonly ended: Promise<MachineEnd>;
  /** The host's systemd, by its pid here, once it has started what it starts at boot. */
  readonly booted: Promise<number>;
  readonly #outermost: ChildProcess;
  readonly #folder: string;
  #hasEnded = false;

  constructor(options: MachineOptions) {
    this.#folder = options.folder;
    const console = openSync(join(options.folder, 'console.log'), 'a');
    this.#outermost = spawn('setpriv', wordsOf(options), { stdio: ['ignore', console, console] });
    closeSync(console);
    this.ended = new Promise((resolve, reject) => {
      this.#outermost.once('error', reject);
      this.#outermost.once('exit', (status) => {
        this.#hasEnded = true;
        if (status === rebootStatus) resolve('reboot');
        else resolve(status === 0 ? 'off' : 'killed');
      });
    });
    this.booted = this.#awaitBoot();
    // Whoever asks is told; nobody may be asking yet.
    this.booted.catch(() => undefined);
    this.ended.catch(() => undefined);
  }

  /** As a power cut: nothing inside gets to do anything. */
  async kill(): Promise<void> {
    if (this.#hasEnded) return;
    // The first process of the namespace takes all others with it, and its parent collects it.
    const [first] = childrenOf(this.#outermost.pid);
    if (first === undefined) this.#outermost.kill('SIGKILL');
    else process.kill(first, 'SIGKILL');
    await this.ended;
  }

  async #awaitBoot(): Promise<number> {
    const isBooted = async (): Promise<boolean> => {
      if (this.#hasEnded) throw new Error('it ended');
      const leader = this.#leader();
      if (leader === null) return false;
      const words = ['nsenter', `--target=${leader}`, '--all', 'systemctl', 'is-system-running', '--wait'] as const;
      const { stdout } = await attempt(words, { timeoutMs: bootDeadlineMs });
      return ['running', 'degraded'].includes(stdout.toString('utf8').trim());
    };
    try {
      await eventually(isBooted, { what: `${this.#folder} is booted`, withinMs: bootDeadlineMs });
      const leader = this.#leader();
      assert.ok(leader !== null, 'what has booted runs');
      return leader;
    } catch (error) {
      throw new Error(`the host did not boot; its console:\n${this.#console()}`, { cause: error });
    }
  }

  /** The host's first process: the one that is number 1 in the innermost of three process namespaces. */
  #leader(): number | null {
    const [first] = childrenOf(this.#outermost.pid);
    const found = childrenOf(first).find((pid) => /^NSpid:\t\d+\t\d+\t1$/m.test(readProc(pid, 'status')));
    return found ?? null;
  }

  #console(): string {
    return readFileSync(join(this.#folder, 'console.log'), 'utf8');
  }
}

function wordsOf(options: MachineOptions): readonly string[] {
  const { folder, machineName, layers, networkPid, controlGroups, disks } = options;
  return [
    ...['--pdeathsig', 'KILL', 'nsenter', `--target=${networkPid}`, '--net'],
    ...['unshare', '--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child', '--mount-proc'],
    ...['sh', '-c', bootScript, 'sh', folder, layers.join(':'), machineName],
    ...[String(controlGroups.length), ...controlGroups],
    ...disks.flatMap(({ image, path }) => [image, path]),
  ];
}

const childrenOf = (pid: number | undefined): readonly number[] =>
  pid === undefined
    ? []
    : readProc(pid, `task/${pid}/children`)
        .split(' ')
        .filter((word) => word !== '')
        .map(Number);

/** Empty when the process is gone. */
function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
