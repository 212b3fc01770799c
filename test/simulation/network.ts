/**
 * The network between hosts: links carry frames in order, some time later, or break; hosts are cut from each other for a
 * while. As the links of production: a receiver that gives its ring up tells the sender why, a sender that does is an end
 * without a reason, and whatever breaks is told to both sides, to each in its own time.
 */
import type { DialledEdge } from '../../agent/effects.ts';
import type { EdgeAddress } from '../../agent/links/link.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { Frame } from '../../protocol/hop-frame.ts';
import type { HostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from './clock.ts';
import type { SeededRandom } from './seeded-random.ts';

/** One end of a link: what an agent process does with its news. */
export interface LinkEnd {
  readonly host: HostName;
  /** Whether the process has ended. */
  readonly isGone: boolean;
  /** Runs now, or once the process is scheduled again; never, when it has ended. */
  hear(news: () => void): void;
}

export interface IncomingEnd {
  receive(frame: Frame): void;
  closed(error: P4Error | null): void;
}

export interface OutgoingEnd {
  loading(): void;
  lost(error: P4Error): void;
}

/** What a dialled agent makes of an edge; `null` error for an accepted one. */
export type Answer =
  { readonly kind: 'refused'; readonly error: P4Error } | { readonly kind: 'accepted'; readonly incoming: IncomingEnd };

export interface DialledAgent extends LinkEnd {
  answer(edge: EdgeAddress, peer: HostName, link: SimLink): Answer;
}

export interface NetworkOutside {
  readonly clock: Clock;
  readonly random: SeededRandom;
  /** The agent that listens on a host, `null` when none does. */
  readonly agentAt: (host: HostName) => DialledAgent | null;
  readonly isPoweredAt: (host: HostName) => boolean;
}

export class SimLink {
  readonly edge: EdgeAddress;
  readonly sender: LinkEnd;
  readonly receiver: LinkEnd;
  readonly #network: Network;
  state: 'open' | 'closed' = 'open';
  incoming: IncomingEnd | null = null;
  outgoing: OutgoingEnd | null = null;
  #forwardFreeAtMs = 0;
  #backFreeAtMs = 0;

  constructor(network: Network, edge: EdgeAddress, ends: { readonly sender: LinkEnd; readonly receiver: LinkEnd }) {
    this.#network = network;
    this.edge = edge;
    this.sender = ends.sender;
    this.receiver = ends.receiver;
  }

  send(frame: Frame): void {
    if (this.state === 'open') this.#forward(() => this.incoming?.receive(frame));
  }

  /** By its sender: the receiver hears of an end, behind the frames that were sent. */
  close(): void {
    if (this.state !== 'open') return;
    this.outgoing = null;
    this.#forward(() => {
      this.#end((incoming) => {
        incoming?.closed(null);
      });
    });
  }

  /** By its receiver: the sender is told why. */
  refuse(error: P4Error): void {
    if (this.state !== 'open') return;
    this.incoming = null;
    this.#back(() => {
      const { outgoing } = this;
      this.#end(() => undefined);
      outgoing?.lost(error);
    });
  }

  /** By its receiver, as part of an acknowledgement. */
  tellLoading(): void {
    if (this.state === 'open') this.#back(() => this.outgoing?.loading());
  }

  /** Nothing goes through any more; each side finds out in its own time. */
  break(receiverAfterMs: number, senderAfterMs: number): void {
    if (this.state !== 'open') return;
    const { incoming, outgoing } = this;
    this.#end(() => undefined);
    const { clock } = this.#network.outside;
    clock.after(receiverAfterMs, () => {
      this.receiver.hear(() => incoming?.closed(new P4Error('LINK_LOST', { why: 'the connection broke' })));
    });
    clock.after(senderAfterMs, () => {
      this.sender.hear(() => outgoing?.lost(new P4Error('LINK_LOST', { why: 'the connection broke' })));
    });
  }

  #end(tell: (incoming: IncomingEnd | null) => void): void {
    const { incoming } = this;
    this.state = 'closed';
    this.incoming = null;
    this.outgoing = null;
    this.#network.forget(this);
    tell(incoming);
  }

  #forward(deliver: () => void): void {
    this.#forwardFreeAtMs = this.#arriveAfter(this.#forwardFreeAtMs, this.receiver, deliver);
  }

  #back(deliver: () => void): void {
    this.#backFreeAtMs = this.#arriveAfter(this.#backFreeAtMs, this.sender, deliver);
  }

  #arriveAfter(freeAtMs: number, end: LinkEnd, deliver: () => void): number {
    const { clock } = this.#network.outside;
    const atMs = Math.max(freeAtMs, clock.nowMs + this.#network.delayMs(this.sender.host, this.receiver.host));
    clock.after(atMs - clock.nowMs, () => {
      end.hear(() => {
        if (this.state === 'open') deliver();
      });
    });
    return atMs;
  }
}

export class Network {
  readonly outside: NetworkOutside;
  readonly links = new Set<SimLink>();
  /** By pair of hosts: until when nothing goes between them. */
  readonly #cuts = new Map<string, number>();
  /** Now and then a message takes much longer. */
  slowOneIn = 0;

  constructor(outside: NetworkOutside) {
    this.outside = outside;
  }

  forget(link: SimLink): void {
    this.links.delete(link);
  }

  /** Time of a message between two hosts, until a cut heals included. */
  delayMs(one: HostName, other: HostName): number {
    const { clock, random } = this.outside;
    const slow = this.slowOneIn > 0 && random.oneIn(this.slowOneIn) ? random.between(20, 800) : 0;
    return Math.max(0, (this.#cuts.get(pairOf(one, other)) ?? 0) - clock.nowMs) + random.between(1, 4) / 4 + slow;
  }

  get isCutAnywhere(): boolean {
    return [...this.#cuts.values()].some((untilMs) => untilMs > this.outside.clock.nowMs);
  }

  isCut(one: HostName, other: HostName): boolean {
    return (this.#cuts.get(pairOf(one, other)) ?? 0) > this.outside.clock.nowMs;
  }

  /** Nothing goes between two hosts; what waits too long breaks. */
  cut(one: HostName, other: HostName, forMs: number): void {
    const { clock } = this.outside;
    this.#cuts.set(pairOf(one, other), clock.nowMs + forMs);
    if (forMs < silenceMs) return;
    clock.after(silenceMs, () => {
      for (const link of [...this.links]) {
        if (pairOf(link.sender.host, link.receiver.host) === pairOf(one, other)) this.#break(link);
      }
    });
  }

  /** A connection breaks by itself. */
  breakOne(link: SimLink): void {
    this.#break(link);
  }

  /** An agent process is gone: its peers hear of it, of a machine without power later. */
  drop(end: LinkEnd, isPowerLoss: boolean): void {
    const { random } = this.outside;
    for (const link of [...this.links]) {
      if (link.sender !== end && link.receiver !== end) continue;
      const ms = isPowerLoss ? silenceMs + random.between(0, 500) : random.between(1, 60);
      link.break(ms, ms);
    }
  }

  dial(dialler: LinkEnd, edge: DialledEdge, done: (dialled: SimLink | P4Error) => void): void {
    const { clock, agentAt, isPoweredAt } = this.outside;
    const unreachable = new P4Error('AGENT_UNREACHABLE', { host: edge.host });
    let isOver = false;
    const tell = (ms: number, dialled: SimLink | P4Error): void => {
      clock.after(ms, () => {
        dialler.hear(() => {
          if (isOver) return;
          isOver = true;
          const isBroken = dialled instanceof SimLink && dialled.state === 'closed';
          done(isBroken ? unreachable : dialled);
        });
      });
    };
    // A host that takes the connection and does not answer.
    tell(limits.linkMs, unreachable);
    if (this.isCut(dialler.host, edge.host) || !isPoweredAt(edge.host)) return;
    clock.after(this.delayMs(dialler.host, edge.host), () => {
      const agent = agentAt(edge.host);
      if (agent === null) {
        tell(2, unreachable);
        return;
      }
      agent.hear(() => {
        const { ring, generation, source, destination } = edge;
        const link = new SimLink(this, { ring, generation, source, destination }, { sender: dialler, receiver: agent });
        const answer = agent.answer(link.edge, dialler.host, link);
        const ms = this.delayMs(dialler.host, edge.host);
        if (answer.kind === 'refused') {
          tell(ms, answer.error);
          return;
        }
        link.incoming = answer.incoming;
        this.links.add(link);
        if (dialler.isGone || isOver) this.#break(link);
        tell(ms, link);
      });
    });
  }

  #break(link: SimLink): void {
    const { random } = this.outside;
    link.break(random.between(0, 200), random.between(0, 200));
  }
}

/** As `limits.rpcKeepaliveMs` and its answer's time. */
const silenceMs = limits.rpcKeepaliveMs + limits.rpcKeepaliveAnswerMs;

const pairOf = (one: HostName, other: HostName): string => [one, other].sort().join(' ');
