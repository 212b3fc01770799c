/**
 * The receiving end of ring edges: the handler of Ring.Hops.
 *
 * - Nothing reaches a node whose checksum (E3), edge or generation (G3) is wrong, or that came twice or out of order.
 * - E4: a neighbour that sends more than the window allows is cut off, so memory does not grow whoever it is.
 * - A link that was accepted is closed towards the node exactly once.
 */
import { Metadata, type handleBidiStreamingCall, type ServerDuplexStream } from '@grpc/grpc-js';
import { crc32c } from '@node-rs/crc32';

import { arrayBufferView } from '../../protocol/array-buffer-view.ts';
import { P4Error } from '../../protocol/errors.ts';
import { decodeHopFrame, encodeHopAck } from '../../protocol/hop-codec.ts';
import { decodeHeader, type FrameHeader } from '../../protocol/hop-frame.ts';
import { hostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { identify } from '../rpc/access.ts';
import { statusOfFailure, type CallContext } from '../rpc/call-context.ts';
import { widenWindow } from '../rpc/flow-window.ts';
import { edgeOf } from './edge-metadata.ts';
import type { EdgeAddress, EdgeAnswer, EdgeGate } from './link.ts';

type HopsCall = ServerDuplexStream<Buffer, Buffer>;
type AcceptedEdge = Extract<EdgeAnswer, { readonly kind: 'accepted' }>;

export function hopsCall(gate: EdgeGate, context: CallContext): handleBidiStreamingCall<Buffer, Buffer> {
  return (call) => {
    try {
      const peer = identify(call, context.allowed, context.method);
      const edge = edgeOf(call.metadata);
      const answer = gate(edge, hostName(peer.name));
      if (answer.kind === 'refused') throw answer.error;
      widenWindow(call);
      new IncomingLink({ call, edge, node: answer, context }).start();
    } catch (error) {
      if (error instanceof P4Error)
        context.log({ event: 'rpc-call-refused', method: context.method, from: call.getPeer(), code: error.code });
      endCall(call, error, context);
    }
  };
}

/** Ends the call with the error's status. */
function endCall(call: HopsCall, error: unknown, context: CallContext): void {
  const end = statusOfFailure(error, context);
  if (!call.destroyed) call.emit('error', Object.assign(new Error(end.details), end));
}

interface IncomingLinkOptions {
  readonly call: HopsCall;
  readonly edge: EdgeAddress;
  readonly node: AcceptedEdge;
  readonly context: CallContext;
}

class IncomingLink {
  readonly #call: HopsCall;
  readonly #edge: EdgeAddress;
  readonly #node: AcceptedEdge;
  readonly #context: CallContext;
  /** Takes the link out of the server's open calls. */
  #forget: () => void = () => undefined;
  #isOpen = true;
  /** How often frames had to wait for a stage to load: such times are not the link's. */
  #waits = 0;
  #received = 0;
  #finished = 0;
  /** An acknowledgement leaves at the end of this turn of the event loop. */
  #ackIsDue = false;

  constructor({ call, edge, node, context }: IncomingLinkOptions) {
    this.#call = call;
    this.#edge = edge;
    this.#node = node;
    this.#context = context;
  }

  /** Tells the sender that its edge is accepted, and takes frames from here on. */
  start(): void {
    this.#forget = this.#context.openCalls.add((reason) => {
      this.#fail(reason);
    });
    const { gone } = this.#node;
    this.#node.onLoading(() => {
      this.#waits += 1;
      if (this.#isOpen) this.#call.write(encodeHopAck({ frames: this.#finished, loading: true }));
    });
    const leave = (): void => {
      this.#fail(gone.reason);
    };
    gone.addEventListener('abort', leave, { once: true });
    this.#call.on('cancelled', () => {
      this.#close(new P4Error('LINK_LOST', { why: 'the sender or its connection is gone' }));
    });
    this.#call.on('end', () => {
      // A broken connection looks like an end, too, until gRPC has told that the call is cancelled.
      setImmediate(() => {
        this.#close(null);
        this.#call.end();
      });
    });
    this.#call.on('data', (bytes: Buffer) => {
      this.#take(bytes);
    });
    this.#call.sendMetadata(new Metadata());
  }

  #take(bytes: Buffer): void {
    if (!this.#isOpen) return;
    try {
      const frame = this.#checked(bytes);
      this.#received++;
      const held = this.#held(frame.length);
      let isFinished = false;
      this.#node.receive(frame, () => {
        if (isFinished) return;
        isFinished = true;
        held();
        this.#finish();
      });
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Counts a frame that came. @returns to be called when it is finished */
  #held(bytes: number): () => void {
    const { meter = null } = this.#node;
    if (meter === null) return () => undefined;
    meter.received(bytes);
    const [startMs, waits] = [performance.now(), this.#waits];
    return () => {
      if (waits === this.#waits) meter.finished(performance.now() - startMs);
    };
  }

  /** @throws LINK_WINDOW_EXCEEDED, FRAME_CORRUPT, FRAME_INVALID */
  #checked(bytes: Buffer): Uint8Array<ArrayBuffer> {
    if (this.#received - this.#finished >= limits.linkWindowFrames)
      throw new P4Error('LINK_WINDOW_EXCEEDED', { window: limits.linkWindowFrames });
    const hop = decodeHopFrame(arrayBufferView(bytes));
    if (crc32c(hop.frame) !== hop.crc32c) throw new P4Error('FRAME_CORRUPT', { bytes: hop.frame.length });
    const header = decodeHeader(hop.frame);
    const field = this.#wrongField(header);
    if (field !== null) throw new P4Error('FRAME_INVALID', { field });
    return hop.frame;
  }

  #wrongField(header: FrameHeader): string | null {
    if (header.source !== this.#edge.source) return 'source';
    if (header.destination !== this.#edge.destination) return 'destination';
    if (header.generation !== this.#edge.generation) return 'generation';
    if (header.number !== BigInt(this.#received + 1)) return 'number';
    return null;
  }

  /** One acknowledgement counts all frames that were finished in this turn of the event loop. */
  #finish(): void {
    this.#finished++;
    if (this.#ackIsDue || !this.#isOpen) return;
    this.#ackIsDue = true;
    setImmediate(() => {
      this.#ackIsDue = false;
      if (this.#isOpen) this.#call.write(encodeHopAck({ frames: this.#finished, loading: false }));
    });
  }

  #fail(error: unknown): void {
    if (!this.#isOpen) return;
    endCall(this.#call, error, this.#context);
    this.#close(error instanceof P4Error ? error : new P4Error('LINK_LOST', { why: 'a bug' }, error));
  }

  #close(error: P4Error | null): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#forget();
    this.#node.closed(error);
  }
}
