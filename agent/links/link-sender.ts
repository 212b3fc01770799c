/**
 * The sending end of ring edges: dials the neighbour, proves that it is the neighbour (A3), sends frames.
 *
 * - A link is either refused or lost or closed: its events come to an end exactly once, and after `close` there are none.
 * - Edges to the same agent share one connection. A connection on which a link fails is not used for new links, so the
 *   next dial finds out anew who answers there.
 * - A lost link stays lost: whether to dial again is the caller's decision.
 */
import { status, type ClientDuplexStream, type StatusObject } from '@grpc/grpc-js';
import { crc32c } from '@node-rs/crc32';

import { arrayBufferView } from '../../protocol/array-buffer-view.ts';
import { assert, present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { decodeHopAck, encodeHopFrame } from '../../protocol/hop-codec.ts';
import { numberFrame } from '../../protocol/hop-frame.ts';
import type { HopAck, HopFrame } from '../../protocol/messages.ts';
import type { HostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { hopsPath } from '../../protocol/rpc-definition.ts';
import { errorOf, printable } from '../../protocol/rpc-error.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import type { SendingMeter } from '../metrics/link-meter.ts';
import { edgeMetadata } from './edge-metadata.ts';
import type { EdgeAddress, Link, LinkEvents, LinkStats } from './link.ts';
import { PeerChannels, type ChannelLease } from './peer-channels.ts';
import { SentFrames } from './sent-frames.ts';

export interface DialOptions {
  readonly edge: EdgeAddress;
  /** Whose certificate must answer at `address` and `port`. */
  readonly peerHost: HostName;
  readonly address: string;
  readonly port: number;
  readonly tls: TlsIdentity;
  /** From the call until the neighbour has accepted the edge. */
  readonly deadlineMs: number;
  readonly events: LinkEvents;
  readonly meter?: SendingMeter | null;
}

/** One for each identity: an agent has one, and one that renews its certificate dials anew with it. */
const channelsOf = new WeakMap<TlsIdentity, PeerChannels>();

/**
 * @throws LINK_WRONG_PEER, LINK_TO_SELF, CERTIFICATE_REFUSED, CERTIFICATE_UNUSABLE, AGENT_UNREACHABLE, PROTOCOL_MISMATCH,
 *   or what the neighbour refuses the edge with
 */
export async function dialLink({
  edge,
  peerHost,
  address,
  port,
  tls,
  deadlineMs,
  events,
  meter = null,
}: DialOptions): Promise<Link> {
  const channels = channelsOf.get(tls) ?? new PeerChannels(tls);
  channelsOf.set(tls, channels);
  const lease = channels.lease({ host: peerHost, address, port });
  const call = lease.channel.client.makeBidiStreamRequest<HopFrame, HopAck>(
    hopsPath,
    encodeHopFrame,
    (bytes) => decodeHopAck(arrayBufferView(bytes)),
    edgeMetadata(edge),
  );
  const link = new OutgoingLink({ edge, events, call, lease, meter });
  await link.accepted(deadlineMs);
  return link;
}

type HopsStream = ClientDuplexStream<HopFrame, HopAck>;

interface OutgoingLinkOptions extends Pick<DialOptions, 'edge' | 'events'> {
  readonly call: HopsStream;
  readonly lease: ChannelLease;
  readonly meter: SendingMeter | null;
}

type LinkState =
  | { readonly kind: 'dialling'; accept(): void; refuse(end: StatusObject): void }
  | { readonly kind: 'open' }
  | { readonly kind: 'closing'; readonly timer: NodeJS.Timeout }
  | { readonly kind: 'ended' };

class OutgoingLink implements Link {
  readonly edge: EdgeAddress;
  readonly peer: HostName;
  readonly address: string;
  readonly #events: LinkEvents;
  readonly #call: HopsStream;
  readonly #lease: ChannelLease;
  /** At most the window. */
  readonly #sent: SentFrames;
  readonly #meter: SendingMeter | null;
  #state: LinkState = { kind: 'open' };
  #frames = 0;
  #bytes = 0;
  #framesAcknowledged = 0;
  #bytesAcknowledged = 0;

  constructor({ edge, events, call, lease, meter }: OutgoingLinkOptions) {
    this.#sent = new SentFrames(meter);
    this.#meter = meter;
    this.edge = edge;
    this.peer = lease.channel.peer.host;
    this.address = lease.channel.peer.address;
    this.#events = events;
    this.#call = call;
    this.#lease = lease;
    call.on('metadata', () => {
      if (this.#state.kind === 'dialling') this.#state.accept();
    });
    call.on('data', (ack: HopAck) => {
      this.#take(ack);
    });
    // Every end comes as a status; without a listener the error that goes with it would be thrown.
    call.on('error', () => undefined);
    call.on('status', (end: StatusObject) => {
      this.#end(end);
    });
  }

  /** Waits until the neighbour has accepted the edge. */
  async accepted(deadlineMs: number): Promise<void> {
    const wait = { isOver: false };
    const timer = setTimeout(() => {
      wait.isOver = true;
      this.#call.cancel();
    }, deadlineMs);
    const refused = await new Promise<StatusObject | null>((resolve) => {
      this.#state = {
        kind: 'dialling',
        accept: () => {
          this.#state = { kind: 'open' };
          resolve(null);
        },
        refuse: resolve,
      };
    });
    clearTimeout(timer);
    if (refused === null) return;
    const end = wait.isOver ? { ...refused, code: status.DEADLINE_EXCEEDED } : refused;
    try {
      throw await this.#lease.channel.failure(end, 'Ring.Hops');
    } finally {
      this.#lease.release('failed');
    }
  }

  send(frame: Uint8Array<ArrayBuffer>): number {
    numberFrame(frame, BigInt(this.#frames + 1));
    const checksum = crc32c(frame);
    // The frame is lost with a link that has ended, and its `lost` has told so.
    if (this.#state.kind !== 'open') return checksum;
    assert(this.#sent.count < limits.linkWindowFrames, 'E4: no frame is sent beyond the window');
    this.#frames++;
    this.#bytes += frame.length;
    const nowMs = performance.now();
    this.#sent.add(frame.length, nowMs);
    this.#meter?.sent(frame.length, this.#sent.count, nowMs);
    this.#call.write({ frame, crc32c: checksum });
    return checksum;
  }

  stats(): LinkStats {
    return {
      frames: this.#frames,
      bytes: this.#bytes,
      bytesAcknowledged: this.#bytesAcknowledged,
      unacknowledged: this.#sent.count,
      ackP50Ms: this.#sent.ackTimes.quantile(0.5),
      ackP99Ms: this.#sent.ackTimes.quantile(0.99),
    };
  }

  /** The neighbour hears of it behind the frames that were sent. */
  close(): void {
    if (this.#state.kind !== 'open') return;
    const timer = setTimeout(() => {
      this.#call.cancel();
    }, limits.linkCloseMs);
    this.#state = { kind: 'closing', timer };
    this.#meter?.moved(0, performance.now());
    this.#call.end();
  }

  #take({ frames, loading }: HopAck): void {
    if (this.#state.kind !== 'open') return;
    if (loading) {
      this.#sent.wait();
      this.#events.loading();
    }
    const count = frames - this.#framesAcknowledged;
    if (count < 0 || count > this.#sent.count) {
      this.#lose(new P4Error('LINK_LOST', { ...this.#facts(), why: 'it acknowledged what was not sent' }));
      return;
    }
    const nowMs = performance.now();
    this.#bytesAcknowledged += this.#sent.acknowledge(count, nowMs);
    this.#meter?.moved(this.#sent.count, nowMs);
    this.#framesAcknowledged = frames;
    if (count > 0) this.#events.acknowledged(count);
  }

  /** The call is over. */
  #end(end: StatusObject): void {
    const state = this.#state;
    switch (state.kind) {
      case 'dialling':
        this.#state = { kind: 'ended' };
        state.refuse(end);
        return;
      case 'open':
        this.#lose(errorOf(end) ?? new P4Error('LINK_LOST', { ...this.#facts(), why: endText(end) }));
        return;
      case 'closing':
        clearTimeout(state.timer);
        this.#state = { kind: 'ended' };
        this.#lease.release('unused');
        return;
      case 'ended':
    }
  }

  #lose(error: P4Error): void {
    this.#state = { kind: 'ended' };
    this.#meter?.moved(0, performance.now());
    this.#call.cancel();
    this.#lease.release('failed');
    this.#events.lost(error);
  }

  #facts(): { readonly peer: string; readonly address: string; readonly source: number; readonly destination: number } {
    const { source, destination } = this.edge;
    return { peer: this.peer, address: this.address, source, destination };
  }
}

const endText = ({ code, details }: StatusObject): string =>
  code === status.OK ? 'the receiver ended it' : printable(present(details, 'a status has details'));
