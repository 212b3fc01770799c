/** One ssh connection to one machine, logged in. */
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';

import ssh2, { type Client } from 'ssh2';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { interruption, unlessAborted } from '../interrupt.ts';
import { type ClientKeys, isAboutSecret, KeyRing, type Offer } from './client-keys.ts';
import {
  brokenReason,
  loginRefused,
  lost,
  reasonOf,
  timeoutReason,
  unreachable,
  type ConnectionStage,
} from './connection-failure.ts';
import { askedAlgorithms } from './host-key-algorithms.ts';
import type { HostTrust } from './host-trust.ts';
import type { Hop } from './route.ts';

export interface Link {
  readonly hop: Hop;
  readonly client: Client;
  /** What the connection runs over. */
  readonly socket: Duplex;
  /** Aborted with the error when the connection is gone, also after `end`. */
  readonly gone: AbortSignal;
  end(): Promise<void>;
}

export interface LinkOrder {
  readonly hop: Hop;
  /** The machine before it, `null` for a direct connection. */
  readonly over: Link | null;
  readonly trust: HostTrust;
  readonly keys: ClientKeys;
  readonly signal: AbortSignal;
}

/**
 * Connects and logs in. A connection that is cut before the server says who it is, is tried again.
 * @throws HOST_UNREACHABLE, HOST_KEY_UNKNOWN, HOST_KEY_NOT_ACCEPTED, HOST_KEY_CHANGED, HOST_KEY_REVOKED, SSH_KEY_UNUSABLE, SECRET_NOT_GIVEN, CANCELLED
 */
export async function openLink(order: LinkOrder): Promise<Link> {
  const { hop, trust, keys, signal } = order;
  const offer = await keys.offer(hop.keys, signal);
  const types = await trust.knownTypes(hop);
  for (let attempt = 1; ; attempt++) {
    const socket = await openSocket(order);
    const outcome = await new Login(order, { socket, offer, types }).run();
    switch (outcome.kind) {
      case 'open':
        return outcome.link;
      case 'failed':
        throw outcome.error;
      case 'cut':
        if (attempt >= limits.sshConnectTries) throw outcome.error;
        await pause(limits.sshRetryMs * 2 ** (attempt - 1), undefined, { signal }).catch(() => undefined);
        if (signal.aborted) throw interruption(signal);
    }
  }
}

type LoginOutcome =
  | { readonly kind: 'open'; readonly link: Link }
  | { readonly kind: 'failed'; readonly error: P4Error }
  /** The other side left before it said who it is: worth another try. */
  | { readonly kind: 'cut'; readonly error: P4Error };

interface LoginNeeds {
  readonly socket: Duplex;
  readonly offer: Offer;
  readonly types: readonly string[];
}

/** One try of one login. */
class Login {
  readonly #order: LinkOrder;
  readonly #needs: LoginNeeds;
  readonly #client = new ssh2.Client();
  #stage: ConnectionStage = 'greeting';
  /** What the outcome is put down to; the first cause counts. */
  #cause: P4Error | null = null;
  #methods: readonly string[] = [];
  #loginStep = 0;
  #finish: (outcome: LoginOutcome) => void = () => undefined;
  #timer: NodeJS.Timeout | null = null;
  #isOver = false;
  #trustedKey: Buffer | null = null;

  constructor(order: LinkOrder, needs: LoginNeeds) {
    this.#order = order;
    this.#needs = needs;
  }

  async run(): Promise<LoginOutcome> {
    const { signal } = this.#order;
    const outcome = new Promise<LoginOutcome>((resolve) => {
      this.#finish = resolve;
    });
    const abort = (): void => {
      this.#give(interruption(signal));
    };
    signal.addEventListener('abort', abort, { once: true });
    try {
      this.#startTimer();
      this.#begin();
      if (signal.aborted) abort();
      return await outcome;
    } finally {
      signal.removeEventListener('abort', abort);
      this.#isOver = true;
      this.#stopTimer();
    }
  }

  #begin(): void {
    const { hop } = this.#order;
    const { socket, types } = this.#needs;
    const client = this.#client;
    client.on('handshake', () => {
      if (this.#stage === 'greeting') this.#stage = 'login';
    });
    client.once('ready', () => {
      this.#stage = 'standing';
      this.#finish({ kind: 'open', link: standingLink({ hop, client, socket }) });
    });
    client.on('error', (error) => {
      this.#failed(error);
    });
    client.once('close', () => {
      this.#closed();
    });
    client.connect({
      sock: socket,
      username: hop.user,
      readyTimeout: 0,
      keepaliveInterval: limits.sshKeepaliveMs,
      // Whether the other side is silent is measured by what arrives: answers to these questions may queue behind data.
      keepaliveCountMax: Number.MAX_SAFE_INTEGER,
      algorithms: { serverHostKey: askedAlgorithms(types), compress: ['none'] },
      hostVerifier: (key: Buffer, verify: (isTrusted: boolean) => void) => {
        this.#verify(key, verify);
      },
      authHandler: this.#nextLogin.bind(this),
    });
  }

  /** First what the server takes at all, then one round over all keys, then nothing more. */
  #nextLogin(
    methods: string[] | null,
    _isPartial: boolean | null,
    next: (method: LoginMethod) => void,
  ): false | undefined {
    const { hop, signal } = this.#order;
    if (methods !== null) this.#methods = methods;
    const step = this.#loginStep++;
    if (step === 0) next({ type: 'none', username: hop.user });
    if (step !== 1) return step === 0 ? undefined : false;
    const agent = new KeyRing(this.#needs.offer.keys, signal, (signing) => {
      void this.#hold(signing);
    });
    next({ type: 'agent', username: hop.user, agent });
    return undefined;
  }

  /** The time a person needs to type is not the server's. */
  async #hold(signing: Promise<unknown>): Promise<void> {
    this.#stopTimer();
    try {
      await signing;
      this.#startTimer();
    } catch (error) {
      // Another key may still be right, but a person who was asked and did not answer is not asked again.
      if (isAboutSecret(error)) this.#give(error);
      else this.#startTimer();
    }
  }

  #verify(key: Buffer, verify: (isTrusted: boolean) => void): void {
    if (this.#trustedKey !== null) {
      // A later key exchange shows the key again. The answer must be given at once: ssh2 takes up sending before a late
      // one, under the keys that are no longer valid.
      verify(this.#trustedKey.equals(key));
      return;
    }
    this.#order.trust.verify(this.#order.hop, key).then(
      () => {
        this.#trustedKey = Buffer.from(key);
        verify(true);
      },
      (error: unknown) => {
        this.#cause ??= error instanceof P4Error ? error : unreachable(this.#order.hop, reasonOf(error, 'its key'));
        verify(false);
      },
    );
  }

  #failed(error: Error & { readonly level?: string }): void {
    // What a key or the agent could not do: the next key is tried.
    if (error.level === 'agent') return;
    const { hop } = this.#order;
    const { keys, remarks } = this.#needs.offer;
    if (error.level === 'client-authentication') {
      const tried = keys.map(({ says }) => says);
      this.#give(loginRefused({ hop, tried, remarks, methods: this.#methods }));
    } else if (this.#stage === 'greeting' && isCut(error)) this.#end('cut', brokenReason.greeting);
    else if (isDisconnect(error) && this.#stage === 'login') {
      // sshd ends the conversation after six keys.
      this.#give(unreachable(hop, error.message, { keys: keys.map(({ says }) => says) }));
    } else this.#end('failed', reasonOf(error, brokenReason[this.#stage]));
  }

  #closed(): void {
    this.#end(this.#stage === 'greeting' ? 'cut' : 'failed', brokenReason[this.#stage]);
  }

  #give(error: P4Error): void {
    this.#cause ??= error;
    this.#end('failed', '');
  }

  #end(kind: 'failed' | 'cut', why: string): void {
    const { hop } = this.#order;
    if (this.#stage === 'standing') return;
    const error = this.#cause ?? unreachable(hop, why);
    this.#finish(kind === 'cut' && this.#cause === null ? { kind, error } : { kind: 'failed', error });
    this.#client.destroy();
    this.#needs.socket.destroy();
  }

  #startTimer(): void {
    // A person may answer long after the other side has gone.
    if (this.#isOver) return;
    this.#timer = setTimeout(() => {
      const stage = this.#stage === 'standing' ? 'login' : this.#stage;
      this.#end('failed', timeoutReason[stage]);
    }, limits.sshLoginMs);
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

type LoginMethod =
  | { readonly type: 'none'; readonly username: string }
  | { readonly type: 'agent'; readonly username: string; readonly agent: KeyRing };

/** Connects, directly or through the machine before. */
async function openSocket({ hop, over, signal }: LinkOrder): Promise<Duplex> {
  return over === null ? openDirectly(hop, signal) : openThrough({ hop, over, signal });
}

function openDirectly(hop: Hop, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hop.address, port: hop.port, noDelay: true });
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    };
    const fail = (error: P4Error): void => {
      end();
      socket.destroy();
      reject(error);
    };
    const abort = (): void => {
      fail(interruption(signal));
    };
    const timer = setTimeout(() => {
      fail(unreachable(hop, timeoutReason.connecting));
    }, limits.sshConnectMs);
    signal.addEventListener('abort', abort, { once: true });
    socket.once('error', (error) => {
      fail(unreachable(hop, reasonOf(error, brokenReason.connecting)));
    });
    socket.once('connect', () => {
      end();
      // Until somebody listens, an error must not be nobody's.
      socket.on('error', () => undefined);
      resolve(socket);
    });
    if (signal.aborted) abort();
  });
}

interface Passage {
  readonly hop: Hop;
  readonly over: Link;
  readonly signal: AbortSignal;
}

async function openThrough({ hop, over, signal }: Passage): Promise<Duplex> {
  const jump = over.hop.label;
  const opened = new Promise<Duplex>((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(unreachable(hop, `${jump} does not get an answer from it`, { jump }));
    }, limits.sshConnectMs);
    over.client.forwardOut('127.0.0.1', 0, hop.address, hop.port, (error, channel) => {
      clearTimeout(timer);
      if (error === undefined) resolve(channel);
      else reject(unreachable(hop, `${jump} cannot or may not reach it: ${error.message}`, { jump }));
    });
  });
  return unlessAborted(opened, signal);
}

interface Standing {
  readonly hop: Hop;
  readonly client: Client;
  readonly socket: Duplex;
}

function standingLink({ hop, client, socket }: Standing): Link {
  const gone = new AbortController();
  let reason: unknown = null;
  let heardAt = performance.now();
  socket.on('data', () => {
    heardAt = performance.now();
  });
  const watch = setInterval(() => {
    if (performance.now() - heardAt < limits.sshSilenceMs) return;
    reason ??= new Error('it no longer answers');
    socket.destroy();
    close();
  }, limits.sshKeepaliveMs / 2);
  const close = (): void => {
    clearInterval(watch);
    if (!gone.signal.aborted) gone.abort(lost(hop, reasonOf(reason, brokenReason.standing), reason ?? undefined));
  };
  client.on('error', (error) => {
    reason ??= error;
  });
  // What runs over the machine before stays half open when the other side goes: it would be missed by its silence alone.
  client.once('end', () => {
    socket.destroy();
  });
  client.once('close', close);
  return {
    hop,
    client,
    socket,
    gone: gone.signal,
    end: async () => {
      if (gone.signal.aborted) return;
      reason ??= new Error('it was closed here');
      const closed = new Promise<void>((resolve) => {
        gone.signal.addEventListener('abort', () => {
          resolve();
        });
      });
      client.end();
      const late = setTimeout(() => {
        socket.destroy();
        close();
      }, limits.sshEndMs);
      await closed;
      clearTimeout(late);
    },
  };
}

const isCut = (error: Error & { readonly level?: string }): boolean =>
  error.level === 'protocol' || ('code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE'));

/** The server said goodbye with a reason. */
const isDisconnect = (error: Error): boolean => 'code' in error && typeof error.code === 'number';
