/**
 * A call whose requests are a stream: the handler reads them as fast as it can use them, and no faster.
 *
 * The connection's window is widened first: with HTTP/2's 64 KiB a distant sender would wait for credit most of the time.
 */
import type { handleClientStreamingCall } from '@grpc/grpc-js';

import type { CallContext } from './call-context.ts';
import { answered, callerOf, CallEnding, type Caller } from './calls.ts';
import { widenWindow } from './flow-window.ts';

/**
 * The answer is what it returns. Requests end when the sender has ended them; where it is gone instead, the caller's
 * signal aborts and the iteration throws.
 */
export type UploadHandler<Request, Reply> = (requests: AsyncIterable<Request>, caller: Caller) => Promise<Reply>;

export function uploadCall<Request, Reply>(
  handler: UploadHandler<Request, Reply>,
  context: CallContext,
): handleClientStreamingCall<Request, Reply> {
  return (call, callback) => {
    const ending = new CallEnding();
    const forget = context.openCalls.add((reason) => {
      ending.abort(reason);
    });
    const run = async (): Promise<Reply> => {
      const caller = callerOf(call, context, ending);
      widenWindow(call);
      return handler(requestsOf<Request>(call, caller.signal), caller);
    };
    void answered(run(), { ending, context, callback }).finally(() => {
      forget();
      // What still comes after an answer is nobody's.
      call.resume();
    });
  };
}

/** Ends with the signal's reason where the sender is gone: a stream that was cut short must not look like one that ended. */
async function* requestsOf<Request>(call: AsyncIterable<Request>, signal: AbortSignal): AsyncGenerator<Request> {
  const requests = call[Symbol.asyncIterator]();
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => {
      reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    };
    signal.addEventListener('abort', stop, { once: true });
  });
  aborted.catch(() => undefined);
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await Promise.race([requests.next(), aborted]);
      signal.throwIfAborted();
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
