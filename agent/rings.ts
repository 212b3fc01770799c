/** The ways of every live ring through this agent, and the links that carry them; runs the effects that concern them. */
import { P4Error } from '../protocol/errors.ts';
import type { HostName, LoadId, NodeIndex } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { TlsIdentity } from '../protocol/tls-identity.ts';
import type { LinkedEdge } from './calls.ts';
import type { DialledEdge, Effect } from './effects.ts';
import type { Input } from './inputs.ts';
import { dialLink } from './links/link-sender.ts';
import type { EdgeAddress, EdgeAnswer, Link } from './links/link.ts';
import type { RingMeters } from './metrics/ring-meters.ts';
import type { HopTrail } from './records.ts';
import { RingRoutes } from './route/ring-routes.ts';
import type { AgentState, LiveRing } from './state.ts';
import { edgeFault, edgesToDial } from './step-link.ts';

export interface RingsOptions {
  readonly host: HostName;
  readonly tls: TlsIdentity;
  readonly state: () => AgentState;
  readonly dispatch: (input: Input) => void;
  readonly trail: (hop: HopTrail) => void;
  /** `null` counts nothing. */
  readonly meters: RingMeters | null;
}

export class Rings {
  readonly #options: RingsOptions;
  readonly #routes = new Map<LoadId, RingRoutes>();

  constructor(options: RingsOptions) {
    this.#options = options;
  }

  /** The routes of a ring's load, made when its first stage is there. */
  routesOf(ring: LiveRing): RingRoutes {
    const standing = this.#routes.get(ring.load);
    if (standing !== undefined) return standing;
    const { host, trail, dispatch } = this.#options;
    const at = { ring: ring.ring, load: ring.load };
    const routes = new RingRoutes({
      ...{ load: ring.load, generation: ring.generation, wire: ring.plan.wire, host, trail },
      hosts: ring.plan.stages.map((stage) => stage.host),
      events: {
        returned: ({ items, slowest }) => {
          dispatch({ kind: 'returned', ...at, items, slowest, atMs: performance.now() });
        },
        frameFinished: () => {
          dispatch({ kind: 'frame-finished', ...at });
        },
        lost: (error) => {
          if (this.#routes.get(ring.load) === routes)
            dispatch({ kind: 'link-lost', ...at, error, atMs: performance.now() });
        },
      },
    });
    this.#routes.set(ring.load, routes);
    return routes;
  }

  linksOf(load: LoadId): readonly Link[] {
    return this.#routes.get(load)?.links ?? [];
  }

  /** Decides about an edge that another agent opens to this one. */
  answer(edge: EdgeAddress, peer: HostName): EdgeAnswer {
    const state = this.#options.state();
    const error = edgeFault(state, edge, peer);
    if (error !== null) return { kind: 'refused', error };
    const ring = state.rings.get(edge.ring);
    if (ring?.kind !== 'live') return { kind: 'refused', error: new P4Error('RING_UNKNOWN', { ring: edge.ring }) };
    const answer = this.routesOf(ring).incoming(edge);
    const meter =
      this.#options.meters
        ?.of(ring.load)
        ?.receivingOver({ source: edge.source, destination: edge.destination, peer }) ?? null;
    return answer.kind === 'accepted' ? { ...answer, meter } : answer;
  }

  send({ load, items, tokens }: Extract<Effect, { kind: 'send-frame' }>): void {
    this.#options.meters?.fed(load, items);
    this.#routes.get(load)?.send({ items, tokens });
  }

  tellLoading({ load, source }: Extract<Effect, { kind: 'tell-loading' }>): void {
    this.#routes.get(load)?.tellLoading(source);
  }

  cut(load: LoadId, error: P4Error): void {
    this.#routes.get(load)?.close(error);
    this.#routes.delete(load);
  }

  /** Dials edges that leave this host (A3); one that is being dialled already is not dialled twice. */
  dial({ ring, load, edges }: Extract<Effect, { kind: 'dial-links' }>): void {
    const live = this.#options.state().rings.get(ring);
    if (live?.kind !== 'live' || live.load !== load) return;
    for (const edge of edgesToDial(live, edges)) {
      const routes = this.routesOf(live);
      if (!routes.beginsDialling(edge.source)) continue;
      this.#dialOne(routes, load, edge)
        .then((link) => {
          this.#adopt(routes, load, link);
        })
        .catch((error: unknown) => {
          if (!(error instanceof P4Error)) throw error;
          routes.endsDialling(edge.source);
          if (this.#routes.get(load) === routes)
            this.#options.dispatch({
              kind: 'dial-failed',
              ...{ ring, load, source: edge.source, error, atMs: performance.now() },
            });
        });
    }
  }

  /** A link whose ring was cut while it was dialled is of no use: its receiver hears of the cut by it. */
  #adopt(routes: RingRoutes, load: LoadId, link: Link): void {
    const { ring, source, destination } = link.edge;
    routes.endsDialling(source);
    if (this.#routes.get(load) !== routes) {
      link.close();
      return;
    }
    routes.addLink(link);
    const up: LinkedEdge = { source, destination, address: link.address, peer: link.peer };
    this.#options.dispatch({ kind: 'link-up', ring, load, link: up, atMs: performance.now() });
  }

  #dialOne(routes: RingRoutes, load: LoadId, edge: DialledEdge): Promise<Link> {
    const { ring, generation, source, destination, host, address, port } = edge;
    return dialLink({
      edge: { ring, generation, source, destination },
      peerHost: host,
      address,
      port,
      tls: this.#options.tls,
      deadlineMs: limits.linkMs,
      meter: this.#options.meters?.of(load)?.sendingOver({ source, destination, peer: host }) ?? null,
      events: {
        acknowledged: (count) => {
          routes.acknowledged(source, count);
        },
        loading: () => {
          if (this.#routes.get(load) !== routes) return;
          this.#options.dispatch({ kind: 'neighbour-loads', ring, load, source, atMs: performance.now() });
        },
        lost: (error) => {
          if (this.#routes.get(load) !== routes) return;
          // Where the loss began has named itself; else it is this neighbour.
          const named = new P4Error(error.code, { ring, node: destination, host, ...error.facts }, error);
          this.#options.dispatch({ kind: 'link-lost', ring, load, error: named, atMs: performance.now() });
        },
      },
    });
  }

  /** A stage of this host put out a frame. */
  output(load: LoadId, node: NodeIndex, frame: Uint8Array<ArrayBuffer>): void {
    this.#routes.get(load)?.output(node, frame);
  }
}
