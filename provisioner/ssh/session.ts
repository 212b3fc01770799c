/**
 * What the rest of deploy sees of ssh: one connection to one host, on which many commands run at once.
 *
 * Opening one is in `session-opening.ts`; nothing else makes one.
 */
import type { Duplex, Readable, Writable } from 'node:stream';

import type { HostName } from '../../protocol/ids.ts';
import type { NetAddress } from '../../protocol/net-address.ts';
import type { SshWay } from './ssh-way.ts';

export interface RemoteOrder {
  /**
   * A script for `sh` (POSIX). It runs as root, through the host's `become`, unless `asRoot` is false. Whatever is put
   * into it from outside goes through `shellQuoted` (`shell-quoting.ts`).
   */
  readonly script: string;
  /** True where nothing is said. */
  readonly asRoot?: boolean;
  /** The script's standard input, streamed as fast as the host takes it; nothing where none is given. */
  readonly input?: Uint8Array | AsyncIterable<Uint8Array>;
  /** Ends the command. */
  readonly signal?: AbortSignal;
  /** Milliseconds after which the command is ended; without it, it may take as long as it likes. */
  readonly timeoutMs?: number;
}

export interface RemoteResult {
  /** Exit status of the script: 0 to 255; 128 and the signal's number for one that a signal ended. */
  readonly status: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** A command that runs until it, or somebody, ends it. */
export interface RemoteProcess {
  /** Its standard input; ending it is the end of file there. */
  readonly stdin: Writable;
  /** Has to be read: a full window stops the command, and nothing else on the connection. */
  readonly stdout: Readable;
  /**
   * Status `null` where a signal ended it, or nothing is known of its end. Rejects with HOST_LOST, CANCELLED.
   * Standard error is its last part only, where there is much of it.
   */
  readonly exited: Promise<{ readonly status: number | null; readonly stderr: string }>;
  /** Ends it as far as ssh can. */
  end(): void;
}

export interface Session {
  readonly host: HostName;
  /** How ssh comes to the host, where it has to pass others; `null` for a direct connection. */
  readonly way: SshWay | null;
  /**
   * Resolves with any exit status of the script.
   * @throws HOST_LOST, HOST_TIMEOUT, CANCELLED, BECOME_NEEDS_PASSWORD, BECOME_REFUSED
   */
  run(order: RemoteOrder): Promise<RemoteResult>;
  /** @throws as `run` does */
  start(order: Omit<RemoteOrder, 'input' | 'timeoutMs'>): Promise<RemoteProcess>;
  /**
   * A connection to the host's agent that the host itself makes, to any of its addresses.
   * @throws AGENT_UNREACHABLE, SSH_FORWARDING_REFUSED, HOST_LOST, CANCELLED
   */
  forward(at: NetAddress, signal: AbortSignal): Promise<Duplex>;
  /** Ends what still runs and closes the connection; jump connections close when the last session over them does. */
  close(): Promise<void>;
}
