/** Calls on their way through `step`: each gets a number, and its promise settles with the reply. */
import { present } from '../protocol/assert.ts';
import type { P4Error } from '../protocol/errors.ts';
import type { CallId, CallReply } from './calls.ts';

type ReplyKind = Exclude<CallReply['kind'], 'refused'>;
type ReplyOf<Kind extends ReplyKind> = Extract<CallReply, { kind: Kind }>;

interface Waiting {
  readonly resolve: (reply: CallReply) => void;
  readonly reject: (error: P4Error) => void;
}

export class PendingCalls {
  #next = 1;
  readonly #waiting = new Map<CallId, Waiting>();

  /**
   * Numbers a call, hands it to `dispatch` and waits for the reply.
   * @throws the P4Error of a refusal
   */
  async ask<Kind extends ReplyKind>(kind: Kind, dispatch: (call: CallId) => void): Promise<ReplyOf<Kind>> {
    const call = this.#next++ as CallId;
    const reply = await new Promise<CallReply>((resolve, reject) => {
      this.#waiting.set(call, { resolve, reject });
      dispatch(call);
    });
    return present(reply.kind === kind ? (reply as ReplyOf<Kind>) : null, 'a call gets the kind of reply it asked for');
  }

  answer(call: CallId, reply: CallReply): void {
    const waiting = this.#waiting.get(call);
    this.#waiting.delete(call);
    if (reply.kind === 'refused') waiting?.reject(reply.error);
    else waiting?.resolve(reply);
  }
}
