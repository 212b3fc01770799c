/** For tests on real hosts: an operator's machine, with a folder of its own and the commands as a user runs them. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';

import type { TestHosts } from './test-hosts.ts';

export interface DeskCommand {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
  readonly durationMs: number;
}

/** One JSON line of a command. */
export type DeskEvent = Readonly<Record<string, unknown>> & { readonly event: string };

export interface InventoryOrder {
  readonly hosts: readonly string[];
  readonly network: string;
  readonly more?: readonly string[];
}

const main = join(import.meta.dirname, '../../provisioner/main.js');

export class OperatorDesk {
  readonly folder: string;
  readonly inventory: string;
  /** The built commands; a desk may have a changed copy of them. */
  program = main;

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'p4-desk-'));
    this.inventory = join(this.folder, 'inventory.yaml');
    mkdirSync(join(this.folder, 'home'));
  }

  write(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    return path;
  }

  /**
   * Writes the inventory of hosts that are all reached over one of their networks.
   * @param more lines at its end
   */
  writeInventory(fleet: TestHosts, { hosts, network, more = [] }: InventoryOrder): void {
    const lines = hosts.map((name) => `  ${name}: { address: ${fleet.host(name).address(network)} }`);
    const login = `fleet: { user: ops, key: ${fleet.key}, become: sudo }`;
    this.write('inventory.yaml', [login, 'hosts:', ...lines, ...more, ''].join('\n'));
  }

  run(...words: readonly string[]): Promise<DeskCommand> {
    return this.#run(words, () => undefined);
  }

  /** @param heard is given the command and all that it has said so far, each time it says more */
  async #run(words: readonly string[], heard: (child: ChildProcess, out: string) => void): Promise<DeskCommand> {
    const startedAtMs = performance.now();
    const child = spawn(process.execPath, ['--enable-source-maps', this.program, ...words], {
      cwd: this.folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOME: join(this.folder, 'home'),
        USER: userInfo().username,
        P4_STATE: join(this.folder, 'state'),
      },
    });
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
      heard(child, out);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
    const exit = await new Promise<number>((resolve) => {
      child.once('close', (status) => {
        resolve(status ?? -1);
      });
    });
    return { exit, out, err, durationMs: performance.now() - startedAtMs };
  }

  /** Deploys with `--json`. */
  async deploy(...options: readonly string[]): Promise<Deployed> {
    return new Deployed(await this.run(...this.#deployWords(options)));
  }

  /** Deploys, and sends a signal as soon as a phase begins. */
  async deployUntil(phase: string, signal: NodeJS.Signals, ...options: readonly string[]): Promise<Deployed> {
    let isSent = false;
    const end = await this.#run(this.#deployWords(options), (child, out) => {
      if (isSent || !out.includes(`{"event":"phase","phase":"${phase}"}`)) return;
      isSent = child.kill(signal);
    });
    return new Deployed(end);
  }

  #deployWords(options: readonly string[]): readonly string[] {
    return ['deploy', this.inventory, '--json', '--accept-new-host-keys', ...options];
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A deployment that has ended, by what it said. */
export class Deployed {
  readonly end: DeskCommand;
  readonly events: readonly DeskEvent[];

  constructor(end: DeskCommand) {
    this.end = end;
    this.events = end.out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as DeskEvent);
  }

  of(event: string): readonly DeskEvent[] {
    return this.events.filter((one) => one.event === event);
  }

  /** `host: change`, in a fixed order. */
  get changes(): readonly string[] {
    return this.of('change')
      .map(({ host, change }) => `${String(host)}: ${String(change)}`)
      .sort();
  }

  /** `host: code`. */
  get failures(): readonly string[] {
    return this.of('host-failed')
      .map(({ host, code }) => `${String(host)}: ${String(code)}`)
      .sort();
  }

  /** Fails with all that was said unless it ended well. */
  succeeded(): this {
    assert.equal(this.end.exit, 0, `${this.end.out}\n${this.end.err}`);
    return this;
  }
}
