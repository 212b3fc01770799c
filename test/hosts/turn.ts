/** A turn that one process of this machine has at a time: a lock on a file, held by a program that ends with its owner. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';

export class Turn {
  readonly #holder: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<unknown>;

  private constructor(path: string) {
    // `cat` ends with its standard input, which ends with this process at the latest.
    const words = ['--exclusive', path, 'sh', '-c', 'echo held; exec cat'];
    this.#holder = spawn('flock', words, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#ended = once(this.#holder, 'exit');
  }

  /** Waits until whoever has the turn has ended it, or is gone. */
  static async take(path: string): Promise<Turn> {
    const turn = new Turn(path);
    const said: unknown = await Promise.race([once(turn.#holder.stdout, 'data'), turn.#ended]);
    assert.match(String(said), /held/, `nobody can wait for ${path}`);
    return turn;
  }

  async end(): Promise<void> {
    this.#holder.stdin.end();
    await this.#ended;
  }
}
