/** Handlers as plain async functions, and how gRPC's calls are turned into them. */
import type { handleServerStreamingCall, handleUnaryCall, sendUnaryData, ServerWritableStream } from '@grpc/grpc-js';

import { P4Error } from '../../protocol/errors.ts';
import type { PeerIdentity } from '../../protocol/peer-identity.ts';
import type {
  ClientStream,
  MethodName,
  ServerStream,
  ServiceName,
  Services,
  Unary,
} from '../../protocol/rpc-services.ts';
import { identify, type PeerOfCall } from './access.ts';
import { statusOfFailure, type CallContext } from './call-context.ts';
import type { UploadHandler } from './upload-call.ts';

/** Who calls. */
export interface Caller extends PeerIdentity {
  /** Address and port the call comes from. */
  readonly from: string;
  /** Aborted, with a `P4Error` as its reason, when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

export type UnaryHandler<Request, Reply> = (request: Request, caller: Caller) => Promise<Reply>;

/** The stream ends when the handler returns; with the error's status when it throws. */
export type StreamHandler<Request, Event> = (
  request: Request,
  caller: Caller,
  stream: EventSender<Event>,
) => Promise<void>;

export interface EventSender<Event> {
  /**
   * Hands over one event. Settles when there is room for the next one: a handler that waits for it holds no more than a
   * few events for a slow reader. Rejects with the signal's reason once the reader is gone; left unawaited, that is
   * ignored.
   */
  send(event: Event): Promise<void>;
  /** The caller's signal. */
  readonly signal: AbortSignal;
}

type HandlerOf<Method> =
  Method extends Unary<infer Request, infer Reply>
    ? UnaryHandler<Request, Reply>
    : Method extends ServerStream<infer Request, infer Event>
      ? StreamHandler<Request, Event>
      : Method extends ClientStream<infer Request, infer Reply>
        ? UploadHandler<Request, Reply>
        : never;

export type RpcHandlers = {
  readonly [Service in ServiceName]: {
    readonly [Name in MethodName<Service>]: HandlerOf<Services[Service][Name]>;
  };
};

/** What both kinds of call have. */
export interface IncomingCall extends PeerOfCall {
  getPeer(): string;
  on(event: 'cancelled', listener: () => void): unknown;
}

export function unaryCall<Request, Reply>(
  handler: UnaryHandler<Request, Reply>,
  context: CallContext,
): handleUnaryCall<Request, Reply> {
  return (call, callback) => {
    const ending = new CallEnding();
    const run = async (): Promise<Reply> => handler(call.request, callerOf(call, context, ending));
    void answered(run(), { ending, context, callback });
  };
}

interface Answering<Reply> {
  readonly ending: CallEnding;
  readonly context: CallContext;
  readonly callback: sendUnaryData<Reply>;
}

/** Answers a call with what its handler comes to, and settles then. */
export function answered<Reply>(work: Promise<Reply>, { ending, context, callback }: Answering<Reply>): Promise<void> {
  return work.then(
    (reply) => {
      ending.isAnswered = true;
      callback(null, reply);
    },
    (error: unknown) => {
      ending.isAnswered = true;
      callback(statusOfFailure(error, context));
    },
  );
}

export function streamCall<Request, Event>(
  handler: StreamHandler<Request, Event>,
  context: CallContext,
): handleServerStreamingCall<Request, Event> {
  return (call) => {
    const ending = new CallEnding();
    const forget = context.openCalls.add((reason) => {
      ending.abort(reason);
    });
    const run = async (): Promise<void> => {
      const caller = callerOf(call, context, ending);
      await handler(call.request, caller, new CallEvents(call, caller.signal));
    };
    run()
      .then(
        () => {
          ending.isAnswered = true;
          call.end();
        },
        (error: unknown) => {
          ending.isAnswered = true;
          endStream(call, error, context);
        },
      )
      .finally(forget);
  };
}

function endStream<Request, Event>(
  call: ServerWritableStream<Request, Event>,
  error: unknown,
  context: CallContext,
): void {
  const end = statusOfFailure(error, context);
  // gRPC's way to end a stream with a status: it waits for the events before it.
  if (!call.destroyed) call.emit('error', Object.assign(new Error(end.details), end));
}

/** Aborts a call that ends before its handler does; gRPC reports the end of every call alike. */
export class CallEnding {
  isAnswered = false;
  readonly #controller = new AbortController();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: P4Error): void {
    if (!this.isAnswered) this.#controller.abort(reason);
  }
}

/** @throws ROLE_FORBIDDEN */
export function callerOf(call: IncomingCall, context: CallContext, ending: CallEnding): Caller {
  const from = call.getPeer();
  call.on('cancelled', () => {
    ending.abort(new P4Error('CANCELLED', { by: 'the caller', method: context.method }));
  });
  try {
    return { ...identify(call, context.allowed, context.method), from, signal: ending.signal };
  } catch (error) {
    if (error instanceof P4Error)
      context.log({ event: 'rpc-call-refused', method: context.method, from, code: error.code });
    throw error;
  }
}

class CallEvents<Request, Event> implements EventSender<Event> {
  readonly signal: AbortSignal;
  readonly #call: ServerWritableStream<Request, Event>;
  /** Shared by all that wait for room; `null` while there is room. */
  #room: Promise<void> | null = null;

  constructor(call: ServerWritableStream<Request, Event>, signal: AbortSignal) {
    this.#call = call;
    this.signal = signal;
  }

  send(event: Event): Promise<void> {
    if (this.signal.aborted) return ignorable(Promise.reject(gone(this.signal)));
    if (this.#call.write(event)) return settled;
    this.#room ??= ignorable(this.#waitForRoom());
    return this.#room;
  }

  #waitForRoom(): Promise<void> {
    return new Promise((resolve, reject) => {
      const drained = (): void => {
        this.#room = null;
        this.signal.removeEventListener('abort', aborted);
        resolve();
      };
      const aborted = (): void => {
        this.#room = null;
        this.#call.off('drain', drained);
        reject(gone(this.signal));
      };
      this.#call.once('drain', drained);
      this.signal.addEventListener('abort', aborted, { once: true });
    });
  }
}

const settled = Promise.resolve();

/** The same promise; its rejection counts as handled even if nobody waits for it. */
function ignorable(promise: Promise<void>): Promise<void> {
  promise.catch(() => undefined);
  return promise;
}

const gone = (signal: AbortSignal): P4Error =>
  signal.reason instanceof P4Error ? signal.reason : new P4Error('CANCELLED', {}, signal.reason);
