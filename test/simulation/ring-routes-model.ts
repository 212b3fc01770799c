/**
 * The ways of one live ring through an agent, as `agent/rings.ts` and `agent/route/` have them: the same rules of who is
 * told what when they close, without windows and bytes.
 */
import type { EdgeAddress } from '../../agent/links/link.ts';
import type { LiveRing } from '../../agent/state.ts';
import { P4Error } from '../../protocol/errors.ts';
import { noStep, type Frame } from '../../protocol/hop-frame.ts';
import { nodeIndex, type HostName, type NodeIndex } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { FrameDraft } from '../../agent/head/schedule.ts';
import type { HomeFrame } from '../../agent/route/edge.ts';
import type { Answer, SimLink } from './network.ts';

export interface RouteEvents {
  returned(home: HomeFrame): void;
  frameFinished(): void;
  lost(error: P4Error): void;
  /** Later, unless the agent has ended. */
  after(ms: number, run: () => void): void;
}

interface NodeRoute {
  readonly send: (frame: Frame) => void;
  edge: ((frame: Frame) => void) | null;
  /** Until it leads somewhere. */
  waiting: Frame[];
}

export class RingRoutesModel {
  readonly ring: LiveRing;
  readonly #host: HostName;
  readonly #events: RouteEvents;
  readonly #nodes = new Map<NodeIndex, NodeRoute>();
  readonly #outgoing = new Map<NodeIndex, SimLink>();
  readonly #incoming = new Map<NodeIndex, SimLink>();
  readonly dialling = new Set<NodeIndex>();
  isClosed = false;

  constructor(ring: LiveRing, host: HostName, events: RouteEvents) {
    this.ring = ring;
    this.#host = host;
    this.#events = events;
  }

  addStage(node: NodeIndex, send: (frame: Frame) => void): void {
    this.#nodes.set(node, { send, edge: null, waiting: [] });
    for (const [index, route] of this.#nodes) if (route.edge === null) this.#joinLocally(index, route);
    const link = this.#outgoing.get(node);
    const added = this.#nodes.get(node);
    if (link !== undefined && added !== undefined)
      lead(added, (frame) => {
        link.send(frame);
      });
  }

  addLink(link: SimLink): void {
    this.#outgoing.set(link.edge.source, link);
    const node = this.#nodes.get(link.edge.source);
    if (node !== undefined)
      lead(node, (frame) => {
        link.send(frame);
      });
  }

  /** What a stage of this host put out. */
  output(node: NodeIndex, frame: Frame): void {
    const route = this.#nodes.get(node);
    if (this.isClosed || route === undefined) return;
    if (frame.generation !== this.ring.generation) {
      this.#lose(new P4Error('GENERATION_MISMATCH', { node }));
      return;
    }
    route.edge?.(frame);
    for (let count = 0; node === 0 && count < frame.completes; count++) this.#events.frameFinished();
  }

  /** The head's next frame into its stage. */
  send({ items, tokens }: FrameDraft): void {
    const head = nodeIndex(0);
    const frame: Frame = {
      ...{
        source: head,
        destination: head,
        generation: this.ring.generation,
        number: 0n,
        completes: 0,
        slowest: noStep,
        items,
      },
      ...{ tokens: Uint32Array.from(tokens), hidden: null, wire: 'f32', rows: tokens.length, width: 0 },
    };
    this.#accept(head, frame);
  }

  /** The receiving side of an edge that was found to be one of this ring. */
  incoming(edge: EdgeAddress, link: SimLink): Answer {
    const { ring, source, destination } = edge;
    if (this.#incoming.has(source)) {
      // Its sender knows of a loss that has not been heard of here.
      this.#lose(new P4Error('LINK_LOST', { ring, node: source, host: link.sender.host }));
      return { kind: 'refused', error: new P4Error('EDGE_TAKEN', { ring, source, destination }) };
    }
    this.#incoming.set(source, link);
    return {
      kind: 'accepted',
      incoming: {
        receive: (frame) => {
          this.#receive(edge, frame);
        },
        closed: (error) => {
          this.#closedBySender(edge, link, error);
        },
      },
    };
  }

  /** Told towards the head alone. */
  tellLoading(behind: NodeIndex): void {
    for (const link of this.#incoming.values()) {
      const { destination } = link.edge;
      if (destination !== 0 && destination <= behind) link.tellLoading();
    }
  }

  /** The agents before this one are told why; those behind it hear of an end. */
  close(error: P4Error): void {
    this.isClosed = true;
    for (const link of this.#incoming.values()) link.refuse(error);
    for (const link of this.#outgoing.values()) link.close();
    this.#nodes.clear();
    this.#outgoing.clear();
    this.#incoming.clear();
  }

  #receive(edge: EdgeAddress, frame: Frame): void {
    if (this.isClosed) return;
    if (frame.generation !== this.ring.generation) {
      this.#lose(new P4Error('GENERATION_MISMATCH', { ring: edge.ring }));
      return;
    }
    if (edge.destination === 0) this.#events.returned(frame);
    else this.#accept(edge.destination, frame);
  }

  #accept(node: NodeIndex, frame: Frame): void {
    const route = this.#nodes.get(node);
    if (this.isClosed || route === undefined) return;
    if (route.edge === null) route.waiting.push(frame);
    else route.send(frame);
  }

  #joinLocally(index: NodeIndex, route: NodeRoute): void {
    const { stages } = this.ring.plan;
    const next = nodeIndex((index + 1) % stages.length);
    if (stages[next]?.host !== this.#host) return;
    if (next === 0) {
      lead(route, (frame) => {
        this.#events.returned(frame);
      });
    } else if (this.#nodes.has(next)) {
      lead(route, (frame) => {
        this.#accept(next, frame);
      });
    }
  }

  #closedBySender({ ring, source }: EdgeAddress, { sender }: SimLink, error: P4Error | null): void {
    const lost = new P4Error(error?.code ?? 'LINK_LOST', { ring, node: source, host: sender.host, ...error?.facts });
    if (error !== null) this.#lose(lost);
    else {
      this.#events.after(limits.lossNewsMs, () => {
        this.#lose(lost);
      });
    }
  }

  #lose(error: P4Error): void {
    if (this.isClosed) return;
    this.close(error);
    this.#events.lost(error);
  }
}

function lead(route: NodeRoute, edge: (frame: Frame) => void): void {
  route.edge = edge;
  const { waiting } = route;
  route.waiting = [];
  for (const frame of waiting) route.send(frame);
}
