/**
 * A network namespace that ends with this process: a small process holds it, and ends when its input does. Whatever is in
 * it, bridges and cables into other namespaces too, ends with it; nothing of it has a name in the machine.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { run } from './command.ts';

export class NetworkNamespace {
  readonly pid: number;
  readonly #holder: ChildProcess;

  private constructor(holder: ChildProcess, pid: number) {
    this.#holder = holder;
    this.pid = pid;
  }

  static async make(): Promise<NetworkNamespace> {
    const words = ['--net', 'sh', '-c', 'echo made; exec cat'];
    const holder = spawn('unshare', words, { stdio: ['pipe', 'pipe', 'inherit'] });
    const made = await Promise.race([
      once(holder.stdout, 'data').then(() => true),
      once(holder, 'exit').then(() => false),
    ]);
    if (!made || holder.pid === undefined) throw new Error('no network namespace could be made');
    const namespace = new NetworkNamespace(holder, holder.pid);
    // IPv6 addresses are good at once: nobody else has them.
    const script = 'cd /proc/sys/net/ipv6/conf && echo 0 > default/accept_dad && echo 0 > all/accept_dad';
    await namespace.run(['sh', '-c', script]);
    await namespace.ip(['link set lo up']);
    return namespace;
  }

  /** Runs a program of the machine in it. */
  async run(words: readonly string[], input = ''): Promise<string> {
    return run(['nsenter', `--target=${this.pid}`, '--net', ...words], { input });
  }

  /** Runs `ip` with each line. */
  async ip(lines: readonly string[]): Promise<void> {
    await this.run(['ip', '-batch', '-'], lines.join('\n'));
  }

  async remove(): Promise<void> {
    if (this.#holder.exitCode !== null || this.#holder.signalCode !== null) return;
    const ended = once(this.#holder, 'exit');
    this.#holder.stdin?.end();
    await ended;
  }
}
