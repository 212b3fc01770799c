/**
 * For tests: the operator's commands as a user runs them, each a process, with a folder of their own for everything they
 * make; and a look at what they left behind.
 *
 * Every process that a command starts inherits its environment, however it is detached: the folder's name in there tells
 * whose it is.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';

export interface CommandEnd {
  /** As a shell has it: 128 and the signal's number for one that a signal ended. */
  readonly exit: number;
  readonly out: string;
  readonly err: string;
  readonly durationMs: number;
}

const main = join(import.meta.dirname, '../../provisioner/main.js');
const signalNumbers: Readonly<Partial<Record<NodeJS.Signals, number>>> = { SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };
/** Longest time for a command that ends by itself, on a busy machine. */
const commandMs = 120_000;

export class CommandHome {
  readonly folder: string;
  /** Where commands put temporary files and sockets. */
  readonly temporary: string;
  readonly state: string;
  readonly #running = new Set<RunningCommand>();

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'p4-ring-'));
    this.temporary = join(this.folder, 'tmp');
    this.state = join(this.folder, 'state');
    mkdirSync(this.temporary);
  }

  /** @param environment variables besides the home's own */
  start(args: readonly string[], input: string | Buffer = '', environment: NodeJS.ProcessEnv = {}): RunningCommand {
    const env = { ...this.#environment(), ...environment };
    const command = new RunningCommand(args, { cwd: this.folder, input, env });
    this.#running.add(command);
    void command.ended.then(() => this.#running.delete(command));
    return command;
  }

  async run(args: readonly string[], input: string | Buffer = ''): Promise<CommandEnd> {
    const command = this.start(args, input);
    const late = setTimeout(() => {
      command.kill('SIGKILL');
    }, commandMs);
    const end = await command.ended;
    clearTimeout(late);
    return end;
  }

  /** Sockets go into the folder for temporary files; paths start from the working folder. */
  #environment(): NodeJS.ProcessEnv {
    const others = Object.entries(process.env).filter(([name]) => name !== 'XDG_RUNTIME_DIR' && name !== 'INIT_CWD');
    return { ...Object.fromEntries(others), TMPDIR: this.temporary, P4_STATE: this.state };
  }

  /** Starts local agents and waits until they answer. */
  async startAgents(args: readonly string[] = []): Promise<RunningCommand> {
    const agents = this.start(['agents', ...args]);
    await agents.says('Ctrl-C ends');
    return agents;
  }

  /** Processes that a command of this home started and that still live, by pid with their command lines. */
  processes(): readonly string[] {
    const mark = `TMPDIR=${this.temporary}`;
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => Number(pid) !== process.pid && readList(pid, 'environ').includes(mark))
      .map((pid) => `${pid} ${readList(pid, 'cmdline').join(' ')}`);
  }

  /** Files, folders and sockets in the folder for temporary files. */
  temporaryFiles(): readonly string[] {
    return readdirSync(this.temporary, { recursive: true }).map(String);
  }

  /** Waits until no process is left; what is left when the time is over. */
  async processesLeft(deadlineMs = 5_000): Promise<readonly string[]> {
    const endsAtMs = performance.now() + deadlineMs;
    for (;;) {
      const found = this.processes();
      if (found.length === 0 || performance.now() > endsAtMs) return found;
      await pause(20);
    }
  }

  /** Ends what still runs and removes the folder. */
  async remove(): Promise<void> {
    for (const command of this.#running) command.kill('SIGKILL');
    for (const line of await this.processesLeft()) process.kill(Number(line.split(' ')[0]), 'SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

interface CommandPlace {
  readonly cwd: string;
  readonly input: string | Buffer;
  readonly env: NodeJS.ProcessEnv;
}

export class RunningCommand {
  readonly ended: Promise<CommandEnd>;
  out = '';
  err = '';
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #woken = new Set<() => void>();

  constructor(args: readonly string[], { cwd, input, env }: CommandPlace) {
    const startedMs = performance.now();
    // A group of its own, as a shell gives it: Ctrl-C reaches every process in it.
    this.#child = spawn(process.execPath, ['--enable-source-maps', main, ...args], {
      cwd,
      env,
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child.stdin.on('error', () => undefined);
    this.#child.stdin.end(input);
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.out += text;
      for (const wake of this.#woken) wake();
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.err += text;
    });
    this.ended = new Promise((resolve) => {
      this.#child.once('close', (status, signal) => {
        const exit = status ?? 128 + (signalNumbers[signal ?? 'SIGKILL'] ?? 0);
        resolve({ exit, out: this.out, err: this.err, durationMs: performance.now() - startedMs });
      });
    });
  }

  /** Waits until the output has this; fails when the command ends first. */
  async says(text: string): Promise<void> {
    const ended = this.ended.then(() => 'ended' as const);
    while (!this.out.includes(text)) {
      const more = new Promise<'more'>((resolve) => {
        this.#woken.add(() => {
          resolve('more');
        });
      });
      const news = await Promise.race([more, ended]);
      if (news === 'ended' && !this.out.includes(text)) {
        throw new Error(`ended without saying ${JSON.stringify(text)}: ${this.out}${this.err}`);
      }
    }
  }

  /** To the process and its group, as a terminal does it. */
  kill(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    process.kill(-pid, signal);
  }
}

/** One of the NUL-separated lists of /proc; empty when the process is gone or is another user's. */
function readList(pid: string, name: 'cmdline' | 'environ'): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
