/**
 * The operator's and client's calls to one agent, typed by the tables of rpc-services.ts.
 *
 * Every failure is a `P4Error`: the one the agent answered with, or what kept the call from being answered.
 */
import { once, type EventEmitter } from 'node:events';

import {
  Metadata,
  status,
  type ClientReadableStream,
  type ClientWritableStream,
  type ServiceError,
} from '@grpc/grpc-js';

import { present } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import { callDefinition } from '../protocol/rpc-definition.ts';
import type { CallStatus } from '../protocol/rpc-error.ts';
import type { MethodOfKind, ReplyOf, RequestOf, ServiceName } from '../protocol/rpc-services.ts';
import type { TlsIdentity } from '../protocol/tls-identity.ts';
import { PeerChannel, type Peer, type PeerWay } from '../transport/peer-channel.ts';

/** A way that has to be made before it is used. */
export interface AgentWay extends PeerWay {
  /** Makes it, or does nothing where it stands. Takes as long as ssh, or a person who is asked for a passphrase. */
  open(signal: AbortSignal): Promise<void>;
}

export interface AgentClientOptions extends Peer {
  readonly tls: TlsIdentity;
  /** Absent: the agent is dialled at its address. */
  readonly way?: AgentWay | null;
}

export interface CallOptions {
  /** From the call, once there is a way to the agent, to its end; `null` for a stream that lasts as long as it is wanted. */
  readonly deadlineMs: number | null;
  /** Ends the call early: it then fails with the signal's reason, or CANCELLED. */
  readonly signal?: AbortSignal;
}

export class AgentClient {
  readonly #channel: PeerChannel;
  readonly #way: AgentWay | null;

  private constructor(channel: PeerChannel, way: AgentWay | null) {
    this.#channel = channel;
    this.#way = way;
  }

  /**
   * Connects with the first call, and again when the connection was lost.
   * @throws CERTIFICATE_UNUSABLE
   */
  static connect({ host, address, port, tls, way = null }: AgentClientOptions): AgentClient {
    return new AgentClient(new PeerChannel({ peer: { host, address, port }, tls, way }), way);
  }

  get peer(): Peer {
    return this.#channel.peer;
  }

  /**
   * @throws AGENT_UNREACHABLE, CERTIFICATE_REFUSED, ROLE_FORBIDDEN, RPC_TIMED_OUT, RPC_FAILED, or what the agent answers;
   *   those of ssh where the way is one
   */
  async call<Service extends ServiceName, Name extends MethodOfKind<Service, 'unary'>>(
    method: readonly [Service, Name],
    request: RequestOf<Service, Name>,
    options: CallOptions,
  ): Promise<ReplyOf<Service, Name>> {
    await this.#begin(options.signal);
    const definition = callDefinition(...method);
    let cancel = (): void => undefined;
    const answer = new Promise<ReplyOf<Service, Name>>((resolve, reject) => {
      const call = this.#channel.client.makeUnaryRequest(
        definition.path,
        definition.requestSerialize,
        definition.responseDeserialize,
        request,
        new Metadata(),
        grpcOptions(options),
        (error, reply) => {
          if (error !== null) reject(error);
          else if (reply !== undefined) resolve(reply);
          else reject(new P4Error('RPC_FAILED', { why: 'no reply' }));
        },
      );
      cancel = () => {
        call.cancel();
      };
    });
    options.signal?.addEventListener('abort', cancel, { once: true });
    try {
      return await answer;
    } catch (error) {
      throw await this.#failure(error, method.join('.'), options.signal);
    } finally {
      options.signal?.removeEventListener('abort', cancel);
    }
  }

  /**
   * The events of a stream, read only as fast as they are asked for. Leaving the loop cancels the call.
   * @throws what `call` throws, on the iteration that meets it
   */
  async *stream<Service extends ServiceName, Name extends MethodOfKind<Service, 'server-stream'>>(
    method: readonly [Service, Name],
    request: RequestOf<Service, Name>,
    options: CallOptions,
  ): AsyncGenerator<ReplyOf<Service, Name>, void, undefined> {
    await this.#begin(options.signal);
    const definition = callDefinition(...method);
    const call: ClientReadableStream<ReplyOf<Service, Name>> = this.#channel.client.makeServerStreamRequest(
      definition.path,
      definition.requestSerialize,
      definition.responseDeserialize,
      request,
      new Metadata(),
      grpcOptions(options),
    );
    // What comes after the loop was left has nobody to tell.
    call.on('error', () => undefined);
    const cancel = (): void => {
      call.cancel();
    };
    options.signal?.addEventListener('abort', cancel, { once: true });
    try {
      const events: AsyncIterable<ReplyOf<Service, Name>> = call;
      for await (const event of events) yield event;
    } catch (error) {
      throw await this.#failure(error, method.join('.'), options.signal);
    } finally {
      options.signal?.removeEventListener('abort', cancel);
      call.cancel();
    }
  }

  /**
   * Sends a stream of requests, as fast as the agent takes them, and waits for the answer. An answer that comes before all
   * is sent ends the sending.
   * @throws what `call` throws, and what the iteration of `requests` does
   */
  async upload<Service extends ServiceName, Name extends MethodOfKind<Service, 'client-stream'>>(
    method: readonly [Service, Name],
    requests: AsyncIterable<RequestOf<Service, Name>>,
    options: CallOptions,
  ): Promise<ReplyOf<Service, Name>> {
    await this.#begin(options.signal);
    const definition = callDefinition(...method);
    const over = new AbortController();
    let call: ClientWritableStream<RequestOf<Service, Name>> | null = null;
    const answer = new Promise<ReplyOf<Service, Name>>((resolve, reject) => {
      call = this.#channel.client.makeClientStreamRequest(
        definition.path,
        definition.requestSerialize,
        definition.responseDeserialize,
        new Metadata(),
        grpcOptions(options),
        (error, reply) => {
          over.abort();
          if (error !== null) reject(error);
          else if (reply !== undefined) resolve(reply);
          else reject(new P4Error('RPC_FAILED', { why: 'no reply' }));
        },
      );
    });
    const stream = present<ClientWritableStream<RequestOf<Service, Name>>>(call, 'a call begins at once');
    const cancel = (): void => {
      stream.cancel();
    };
    options.signal?.addEventListener('abort', cancel, { once: true });
    try {
      const [reply] = await Promise.all([answer, sendAll(stream, requests, over.signal)]);
      return reply;
    } catch (error) {
      stream.cancel();
      throw await this.#failure(error, method.join('.'), options.signal);
    } finally {
      options.signal?.removeEventListener('abort', cancel);
    }
  }

  /** Calls under way fail with CANCELLED. */
  close(): void {
    this.#channel.close();
  }

  async #begin(signal: AbortSignal | undefined): Promise<void> {
    throwIfAborted(signal);
    await this.#way?.open(signal ?? new AbortController().signal);
  }

  async #failure(error: unknown, method: string, signal: AbortSignal | undefined): Promise<unknown> {
    if (!isServiceError(error)) return error;
    if (signal?.aborted === true && error.code === status.CANCELLED) return reasonOf(signal);
    const { code, details, metadata }: CallStatus = error;
    return this.#channel.failure({ code, details, metadata }, method);
  }
}

/** Writes all requests and ends the stream; stops without a word once the call is over: its answer says why. */
async function sendAll<Request>(
  stream: ClientWritableStream<Request>,
  requests: AsyncIterable<Request>,
  over: AbortSignal,
): Promise<void> {
  // The answer has the same error.
  stream.on('error', () => undefined);
  for await (const request of requests) {
    if (over.aborted) return;
    if (!stream.write(request)) await drained(stream, over);
  }
  if (over.aborted) return;
  stream.end();
}

/** Returns when there is room again, or when the call is over. */
async function drained(stream: EventEmitter, over: AbortSignal): Promise<void> {
  try {
    await once(stream, 'drain', { signal: over });
  } catch (error) {
    if (!over.aborted) throw error;
  }
}

const grpcOptions = ({ deadlineMs }: CallOptions): { readonly deadline?: number } =>
  deadlineMs === null ? {} : { deadline: Date.now() + deadlineMs };

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw reasonOf(signal);
}

const reasonOf = (signal: AbortSignal): P4Error =>
  signal.reason instanceof P4Error ? signal.reason : new P4Error('CANCELLED', {}, signal.reason);

const isServiceError = (error: unknown): error is ServiceError =>
  error instanceof Error && 'code' in error && 'metadata' in error && error.metadata instanceof Metadata;
