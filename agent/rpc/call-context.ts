/**
 * What every call of the server shares: who may call, how it ends early, and the three kinds of trouble told apart.
 *
 * A handler that throws a `P4Error` answers with it. Anything else is a bug: it is logged with its stack, the caller gets
 * AGENT_BUG, and then the process ends, since nobody knows what state it left (the default of `bug`).
 */
import { P4Error, type ErrorCode } from '../../protocol/errors.ts';
import type { Role } from '../../protocol/peer-identity.ts';
import { statusOf, type CallStatus } from '../../protocol/rpc-error.ts';

/** One line for each transition; never a generation, never a prompt. */
export type RpcLogLine =
  | { readonly event: 'rpc-listening'; readonly address: string }
  | { readonly event: 'rpc-stopped'; readonly forced: boolean }
  /** A peer that got no further than the handshake. */
  | { readonly event: 'rpc-peer-refused'; readonly from: string; readonly why: string }
  | { readonly event: 'rpc-call-refused'; readonly method: string; readonly from: string; readonly code: string }
  | { readonly event: 'rpc-bug'; readonly method: string; readonly stack: string };

export type RpcLog = (line: RpcLogLine) => void;

export interface CallContext {
  /** As people read it: `Agent.Load`. */
  readonly method: string;
  readonly allowed: readonly Role[];
  readonly log: RpcLog;
  readonly bug: (error: unknown) => void;
  readonly openCalls: OpenCalls;
  /** Told of each call that is answered with an error. */
  readonly failed?: ((method: string, code: ErrorCode) => void) | undefined;
}

/** Ends the process by the error itself, after the answer has had its chance to leave. */
export const dieOfBug = (error: unknown): void => {
  setImmediate(() => {
    throw error;
  });
};

/** Calls that go on until somebody ends them. */
export class OpenCalls {
  readonly #endings = new Set<(reason: P4Error) => void>();

  /** @returns takes the call out again */
  add(end: (reason: P4Error) => void): () => void {
    this.#endings.add(end);
    return () => {
      this.#endings.delete(end);
    };
  }

  endAll(reason: P4Error): void {
    for (const end of [...this.#endings]) end(reason);
  }
}

/** The status of a call whose handler threw `error`. */
export function statusOfFailure(error: unknown, { method, log, bug, failed }: CallContext): CallStatus {
  failed?.(method, error instanceof P4Error ? error.code : 'AGENT_BUG');
  if (error instanceof P4Error) return statusOf(error);
  log({ event: 'rpc-bug', method, stack: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  bug(error);
  return statusOf(new P4Error('AGENT_BUG', { method }));
}
