/** All ways of one live ring through this agent: its nodes, the edges between them, and the edges that come in and go out. */
import { P4Error } from '../../protocol/errors.ts';
import { decodeFrame, decodeHeader, encodeFrame, noStep, requireWire } from '../../protocol/hop-frame.ts';
import { limits } from '../../protocol/limits.ts';
import { nodeIndex, type Generation, type HostName, type LoadId, type NodeIndex } from '../../protocol/ids.ts';
import type { WireType } from '../../protocol/plan.ts';
import type { FrameDraft } from '../head/schedule.ts';
import type { EdgeAddress, EdgeAnswer, Link } from '../links/link.ts';
import type { HopTrail } from '../records.ts';
import { LocalEdge, RemoteEdge, ReturnEdge, type FrameBytes, type HomeFrame } from './edge.ts';
import { NodeRoute } from './node-route.ts';

export interface RingRoutesOptions {
  readonly load: LoadId;
  readonly generation: Generation;
  /** Of the ring's hidden states. */
  readonly wire: WireType;
  readonly host: HostName;
  /** The host of each stage, in ring order. */
  readonly hosts: readonly HostName[];
  readonly trail: (hop: HopTrail) => void;
  readonly events: RingRouteEvents;
}

export interface RingRouteEvents {
  returned(home: HomeFrame): void;
  frameFinished(): void;
  /** The ring cannot go on; called at most once. */
  lost(error: P4Error): void;
}

interface IncomingEdge {
  readonly destination: NodeIndex;
  /** Tells the sender that a stage loads; `null` until it can hear. */
  tellLoading: (() => void) | null;
}

const head = nodeIndex(0);

export class RingRoutes {
  readonly #options: RingRoutesOptions;
  readonly #nodes = new Map<NodeIndex, NodeRoute>();
  readonly #links = new Map<NodeIndex, RemoteEdge>();
  /** The edges that come in from other agents, by their sources. */
  readonly #incoming = new Map<NodeIndex, IncomingEdge>();
  /** Sources of the edges that are being dialled. */
  readonly #dialling = new Set<NodeIndex>();
  /** Tells the agents before this one why the ring is gone. */
  readonly #gone = new AbortController();
  #frameNumber = 0n;
  #isClosed = false;

  constructor(options: RingRoutesOptions) {
    this.#options = options;
  }

  /** Adds a loaded stage; the edges between stages of this host follow by themselves. */
  addStage(node: NodeIndex, sendToStage: (frame: FrameBytes) => void): void {
    const { generation, wire } = this.#options;
    this.#nodes.set(node, new NodeRoute({ node, generation, wire, sendToStage }));
    for (const [index, route] of this.#nodes) if (route.edge === null) this.#joinLocally(index, route);
  }

  /** Adds a dialled link; `events` of the link lead to `acknowledged` and `lost`. */
  addLink(link: Link): void {
    const edge = new RemoteEdge(link, this.#options.load, this.#options.trail);
    this.#links.set(link.edge.source, edge);
    this.#nodes.get(link.edge.source)?.leadTo(edge);
  }

  /** Takes note that an edge is being dialled; false where it is already. */
  beginsDialling(source: NodeIndex): boolean {
    if (this.#dialling.has(source)) return false;
    this.#dialling.add(source);
    return true;
  }

  endsDialling(source: NodeIndex): void {
    this.#dialling.delete(source);
  }

  acknowledged(source: NodeIndex, count: number): void {
    this.#links.get(source)?.acknowledged(count);
    this.#nodes.get(source)?.feed();
  }

  get links(): readonly Link[] {
    return [...this.#links.values()].map(({ link }) => link);
  }

  /** What a stage of this host put out. */
  output(node: NodeIndex, frame: FrameBytes): void {
    this.#guarded(() => this.#nodes.get(node)?.output(frame));
  }

  /** Sends the head's next frame into its stage. */
  send({ items, tokens }: FrameDraft): void {
    const route = this.#nodes.get(head);
    if (route === undefined || this.#isClosed) return;
    const frame = encodeFrame({
      source: head,
      destination: head,
      generation: this.#options.generation,
      number: ++this.#frameNumber,
      completes: 0,
      slowest: noStep,
      items,
      tokens: Uint32Array.from(tokens),
      hidden: null,
    });
    this.#guarded(() => {
      route.accept(frame, () => {
        this.#options.events.frameFinished();
      });
    });
  }

  /** The receiving side of an edge from another agent; `edge` was found to be one of this ring. */
  incoming(edge: EdgeAddress): EdgeAnswer {
    const { ring, source, destination } = edge;
    // Its sender has lost the one that stands, and with it the ring: what that still brings is of before the loss (R1).
    if (this.#incoming.has(source)) {
      const error = new P4Error('EDGE_TAKEN', { ring, source, destination });
      this.#lose(new P4Error('LINK_LOST', { ring, node: source, host: this.#options.hosts[source] ?? '' }, error));
      return { kind: 'refused', error };
    }
    const standing: IncomingEdge = { destination, tellLoading: null };
    this.#incoming.set(source, standing);
    return {
      kind: 'accepted',
      gone: this.#gone.signal,
      receive: (frame, finished) => {
        this.#guarded(() => {
          this.#receive(edge, frame, finished);
        });
      },
      closed: (error) => {
        this.#closedBySender(edge, error);
      },
      onLoading: (tell) => {
        standing.tellLoading = tell;
      },
    };
  }

  /** R1: told towards the head alone, so that it comes to an end there. */
  tellLoading(behind: NodeIndex): void {
    for (const { destination, tellLoading } of this.#incoming.values()) {
      if (destination !== head && destination <= behind) tellLoading?.();
    }
  }

  /** @param error why, for the agents before this one; those behind it hear of an end */
  close(error: P4Error): void {
    this.#isClosed = true;
    this.#gone.abort(error);
    for (const route of this.#nodes.values()) route.close();
    for (const edge of this.#links.values()) edge.close();
    this.#nodes.clear();
    this.#links.clear();
  }

  #receive(edge: EdgeAddress, frame: FrameBytes, finished: () => void): void {
    const header = decodeHeader(frame);
    if (header.generation !== this.#options.generation) throw new P4Error('GENERATION_MISMATCH', { ring: edge.ring });
    if (header.source !== edge.source || header.destination !== edge.destination) {
      throw new P4Error('FRAME_INVALID', { field: 'source', found: header.source });
    }
    requireWire(header, this.#options.wire);
    if (edge.destination === head) {
      this.#options.events.returned(decodeFrame(frame));
      finished();
    } else this.#nodes.get(edge.destination)?.accept(frame, finished);
  }

  #joinLocally(index: NodeIndex, route: NodeRoute): void {
    const { hosts, host, events } = this.#options;
    const next = nodeIndex((index + 1) % hosts.length);
    if (hosts[next] !== host) return;
    if (next === head) {
      route.leadTo(
        new ReturnEdge((home) => {
          events.returned(home);
        }),
      );
      return;
    }
    const nextRoute = this.#nodes.get(next);
    if (nextRoute !== undefined) {
      route.leadTo(
        new LocalEdge(nextRoute, () => {
          route.feed();
        }),
      );
    }
  }

  #guarded(work: () => void): void {
    if (this.#isClosed) return;
    try {
      work();
    } catch (error) {
      if (!(error instanceof P4Error)) throw error;
      this.#lose(error);
    }
  }

  /** Why the sender's agent closed an edge is not known here; it may come round the ring the other way in a moment. */
  #closedBySender({ ring, source }: EdgeAddress, error: P4Error | null): void {
    if (error?.code === 'AGENT_STOPPING') {
      this.#lose(error);
      return;
    }
    const named = { ring, node: source, host: this.#options.hosts[source] ?? '' };
    const lost = new P4Error(error?.code ?? 'LINK_LOST', { ...named, ...error?.facts }, error ?? undefined);
    if (error !== null) this.#lose(lost);
    else if (!this.#isClosed) {
      setTimeout(() => {
        this.#lose(lost);
      }, limits.lossNewsMs);
    }
  }

  #lose(error: P4Error): void {
    if (this.#isClosed) return;
    this.close(error);
    this.#options.events.lost(error);
  }
}
