/** Commands on one host over one connection. */
import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';

import type { ClientChannel } from 'ssh2';

import { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import type { Become } from '../../protocol/inventory.ts';
import { limits } from '../../protocol/limits.ts';
import type { NetAddress } from '../../protocol/net-address.ts';
import { unlessAborted } from '../interrupt.ts';
import { CommandSlots } from './command-slots.ts';
import { fed, gathered, statusOf } from './command-streams.ts';
import { EndWatch } from './end-watch.ts';
import { forwardTo } from './forwarding.ts';
import type { Link } from './link.ts';
import { endingScript, scriptText, shellCommand, type Elevation, type Preamble } from './prelude.ts';
import { RemoteCommand } from './remote-command.ts';
import type { RemoteOrder, RemoteProcess, RemoteResult, Session } from './session.ts';
import type { SshWay } from './ssh-way.ts';
import type { SudoPasswords, SudoUser } from './sudo-passwords.ts';

export interface SessionNeeds {
  readonly host: HostName;
  readonly link: Link;
  readonly way: SshWay | null;
  /** A password file's path is absolute. */
  readonly become: Become;
  readonly passwords: SudoPasswords;
  /** Called once, when the connection is closed. */
  readonly release: () => Promise<void>;
}

type StartOrder = Omit<RemoteOrder, 'input' | 'timeoutMs'>;

/** A command whose script is running. */
interface Running {
  readonly command: RemoteCommand;
  readonly elevation: Elevation;
}

export class RemoteSession implements Session {
  readonly host: HostName;
  readonly way: SshWay | null;
  readonly #needs: SessionNeeds;
  readonly #slots = new CommandSlots(limits.sshCommands);
  readonly #running = new Set<Running>();
  /** Channels that have been asked for and not been answered. */
  #opening = 0;
  #closing: Promise<void> | null = null;

  constructor(needs: SessionNeeds) {
    this.host = needs.host;
    this.way = needs.way;
    this.#needs = needs;
  }

  async run(order: RemoteOrder): Promise<RemoteResult> {
    const { input, timeoutMs, ...start } = order;
    const running = await this.#started(start);
    const { command } = running;
    const watch = new EndWatch({ host: this.host, signal: order.signal, timeoutMs });
    try {
      const output = gathered(command.stdout, this.host);
      output.catch(() => undefined);
      const work = Promise.all([fed(command, input), output, command.ended]);
      const [, stdout, end] = await watch.of(work);
      return { status: statusOf(end), stdout, stderr: command.stderr };
    } catch (error) {
      await this.#kill(running);
      throw error;
    } finally {
      watch.stop();
    }
  }

  async start(order: StartOrder): Promise<RemoteProcess> {
    const running = await this.#started(order);
    const { command } = running;
    const watch = new EndWatch({ host: this.host, signal: order.signal, timeoutMs: undefined });
    const exited = watch.of(command.ended).then(
      ({ status }) => ({ status, stderr: command.stderr }),
      async (error: unknown) => {
        await this.#kill(running);
        throw error;
      },
    );
    exited.catch(() => undefined).finally(watch.stop.bind(watch));
    return {
      stdin: command.stdin,
      stdout: command.stdout,
      exited,
      end: () => {
        void this.#kill(running);
      },
    };
  }

  forward(at: NetAddress, signal: AbortSignal): Promise<Duplex> {
    return forwardTo({ link: this.#needs.link, at, signal });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (!this.#needs.link.gone.aborted) await Promise.all([...this.#running].map((running) => this.#kill(running)));
    await this.#needs.link.end();
    await this.#needs.release();
  }

  /** Waits for room, opens a channel and brings a script to run on it. */
  async #started({ script, asRoot = true, signal }: StartOrder): Promise<Running> {
    const become = asRoot ? this.#needs.become : ({ kind: 'none' } as const);
    const elevation = elevationOf(become);
    const letGo = await this.#slots.take(signal);
    try {
      const command = await this.#opened(elevation, signal);
      const running = { command, elevation };
      this.#running.add(running);
      const release = (): void => {
        this.#running.delete(running);
        letGo();
      };
      command.ended.then(release, release);
      await this.#begun({ running, become, script, signal });
      return running;
    } catch (error) {
      letGo();
      throw error;
    }
  }

  /** A host may allow fewer commands at once than are asked for: then those that run are what it allows. */
  async #opened(elevation: Elevation, signal: AbortSignal | undefined): Promise<RemoteCommand> {
    for (let aloneTries = 0; ;) {
      const others = this.#running.size + this.#opening;
      const word = `p4-${randomBytes(9).toString('hex')}`;
      this.#opening++;
      const opened = await this.#channel(shellCommand(word, elevation)).finally(() => {
        this.#opening--;
      });
      if (opened.kind === 'open') return new RemoteCommand(word, opened.channel, this.#needs.link);
      const running = [...this.#running];
      const isAlone = others + running.length + this.#opening === 0;
      if (isAlone && ++aloneTries >= limits.sshConnectTries) throw this.#silent(opened.why);
      if (running.length > 0) this.#slots.allow(running.length);
      const news = running.map(({ command }) => command.ended.catch(() => undefined));
      const wait = Promise.race([...news, pause(limits.sshRetryMs)]);
      await (signal === undefined ? wait : unlessAborted(wait, signal));
    }
  }

  #channel(command: string): Promise<OpenedChannel> {
    const { client, gone } = this.#needs.link;
    if (gone.aborted) return Promise.reject(failureOf(gone));
    return new Promise((resolve, reject) => {
      const fail = (): void => {
        reject(failureOf(gone));
      };
      gone.addEventListener('abort', fail, { once: true });
      client.exec(command, (error, channel) => {
        gone.removeEventListener('abort', fail);
        if (error === undefined) resolve({ kind: 'open', channel });
        // A connection that breaks off fails everything that waits on it; the reason comes with its end.
        else if ('reason' in error) resolve({ kind: 'refused', why: error.message });
        else if (gone.aborted) fail();
        else gone.addEventListener('abort', fail, { once: true });
      });
    });
  }

  async #begun({ running, become, script, signal }: Beginning): Promise<void> {
    const { command, elevation } = running;
    const watch = new EndWatch({ host: this.host, signal, timeoutMs: undefined });
    try {
      // Where nobody else reads standard input before, the script need not wait for the shell.
      if (elevation !== 'sudo-asking') command.stdin.write(scriptText(command.word, script));
      const { pid } = await watch.of(this.#elevated(command, become, watch));
      if (pid === null) throw await this.#notBegun(running, become);
      if (elevation === 'sudo-asking') command.stdin.write(scriptText(command.word, script));
    } catch (error) {
      command.close();
      throw error;
    } finally {
      watch.stop();
    }
  }

  /** Answers sudo until the script's shell is there, or nothing more is to be said. */
  async #elevated(command: RemoteCommand, become: Become, watch: EndWatch): Promise<Preamble> {
    const { passwords, link } = this.#needs;
    const who: SudoUser = { host: this.host, user: link.hop.user };
    const source = become.kind === 'sudo' ? become.password : ({ kind: 'none' } as const);
    let given: string | null = null;
    let preamble: Preamble = { prompts: 0, pid: null };
    for (;;) {
      preamble = await watch.within(limits.sshShellMs, command.next(preamble));
      if (preamble.pid !== null || preamble.prompts === 0 || command.isClosed || command.isNoise) break;
      const next: string | null =
        given === null
          ? await passwords.first(source, who, watch.signal)
          : await passwords.afterRefusal(source, who, { refused: given, signal: watch.signal });
      if (next === null || preamble.prompts > limits.secretTries) throw this.#refused(command, given);
      given = next;
      command.stdin.write(`${given}\n`);
    }
    if (preamble.pid !== null && given !== null) passwords.noteTaken(who, given);
    return preamble;
  }

  /** Why no script's shell came. */
  async #notBegun({ command, elevation }: Running, become: Become): Promise<P4Error> {
    if (command.isNoise) return this.#silent('the login shell prints without end');
    if (elevation === 'direct') {
      await command.ended;
      return this.#silent(command.wordsBefore);
    }
    if (elevation === 'sudo' && (await this.#isPasswordWanted())) {
      return new P4Error('BECOME_NEEDS_PASSWORD', { host: this.host, user: this.#needs.link.hop.user });
    }
    await command.ended;
    return this.#refused(command, become.kind === 'sudo' && become.password.kind !== 'none' ? '' : null);
  }

  /** sudo without a prompt only says no; with one, it shows whether a password would do. */
  async #isPasswordWanted(): Promise<boolean> {
    const opened = await this.#channel(shellCommand('p4-question', 'sudo-asking'));
    if (opened.kind === 'refused') return false;
    const command = new RemoteCommand('p4-question', opened.channel, this.#needs.link);
    command.stdout.resume();
    const { prompts } = await command.next({ prompts: 0, pid: null });
    command.close();
    return prompts > 0;
  }

  #refused(command: RemoteCommand, given: string | null): P4Error {
    const { user } = this.#needs.link.hop;
    const said = command.wordsBefore;
    const why =
      given === null || command.preamble.prompts === 0 ? 'sudo does not let the user in' : 'the password is wrong';
    return new P4Error('BECOME_REFUSED', { host: this.host, user, why, ...(said === '' ? {} : { said }) });
  }

  #silent(why: string): P4Error {
    const { user } = this.#needs.link.hop;
    return new P4Error('HOST_SHELL_SILENT', { host: this.host, user, ...(why === '' ? {} : { why }) });
  }

  /** Ends a command as far as ssh can: asks its process group to go, then closes the channel. */
  async #kill({ command, elevation }: Running): Promise<void> {
    const { pid } = command.preamble;
    const late = AbortSignal.timeout(limits.sshEndMs);
    command.stdout.resume();
    if (pid !== null && !command.isClosed && !this.#needs.link.gone.aborted) {
      command.signal();
      await unlessAborted(this.#killGroup(command, pid, elevation), late).catch(() => undefined);
      await unlessAborted(command.ended, late).catch(() => undefined);
    }
    command.close();
  }

  /** Over a channel of its own, for which room was left. sshd's own way does not reach what sudo started. */
  async #killGroup(command: RemoteCommand, pid: number, elevation: Elevation): Promise<void> {
    const word = `p4-${randomBytes(9).toString('hex')}`;
    const opened = await this.#channel(shellCommand(word, elevation));
    if (opened.kind === 'refused') return;
    const killer = new RemoteCommand(word, opened.channel, this.#needs.link);
    killer.stdout.resume();
    const become = elevation === 'direct' ? ({ kind: 'none' } as const) : this.#needs.become;
    const script = endingScript(command.word, pid, limits.sshEndMs / 2000);
    await this.#begun({ running: { command: killer, elevation }, become, script, signal: undefined });
    killer.stdin.end();
    await killer.ended;
  }
}

interface Beginning {
  readonly running: Running;
  readonly become: Become;
  readonly script: string;
  readonly signal: AbortSignal | undefined;
}

type OpenedChannel =
  { readonly kind: 'open'; readonly channel: ClientChannel } | { readonly kind: 'refused'; readonly why: string };

function elevationOf(become: Become): Elevation {
  switch (become.kind) {
    case 'none':
      return 'direct';
    case 'sudo':
      return become.password.kind === 'none' ? 'sudo' : 'sudo-asking';
  }
}

const failureOf = (gone: AbortSignal): Error =>
  gone.reason instanceof Error ? gone.reason : new P4Error('HOST_LOST', { why: String(gone.reason) });
