/**
 * What each host's agent has started and has not heard the end of, and how many stages it lost in its present outage: told
 * by its effects and inputs alone, for checks that do not ask its state.
 */
import type { Input } from '../../agent/inputs.ts';
import type { RingState } from '../../agent/state.ts';
import type { Step } from '../../agent/step.ts';
import type { HostName, LoadId, NodeIndex } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { Violation } from './violation.ts';

/** One load on one host. */
interface Watched {
  /** By node and number of the start. */
  readonly stages: Map<string, 'loading' | 'up' | 'stopping'>;
  /** Since when there has always been one that loads; `null` while none does. */
  loadingSinceMs: number | null;
  /** Stages lost since the outage began; the one that began it is not counted. */
  lost: number;
}

export interface WatchedStep {
  readonly host: HostName;
  readonly input: Input;
  readonly step: Step;
  readonly nowMs: number;
}

export class StageWatch {
  readonly #hosts = new Map<HostName, Map<LoadId, Watched>>();

  agentEnded(host: HostName): void {
    this.#hosts.delete(host);
  }

  /** Whether a stage loads there, and may be hoped for. */
  loads(host: HostName, load: LoadId): boolean {
    return this.loadingSinceMs(host, load) !== null;
  }

  /** Since when stages that may be hoped for have loaded there without a pause. */
  loadingSinceMs(host: HostName, load: LoadId): number | null {
    return this.givesUp(host, load) ? null : (this.#hosts.get(host)?.get(load)?.loadingSinceMs ?? null);
  }

  /** Whether so many were lost that a deadline is put off no more for it. */
  givesUp(host: HostName, load: LoadId): boolean {
    return (this.#hosts.get(host)?.get(load)?.lost ?? 0) >= limits.stagesLostMost;
  }

  taken({ host, input, step, nowMs }: WatchedStep): void {
    if ('incarnation' in input) this.#heard(this.#of(host, input.load), input);
    for (const record of step.records) {
      if (record.kind === 'ring-suspended') this.#of(host, record.load).lost = 0;
      if (record.kind === 'load-ended') this.#ended(host, record.load);
    }
    for (const effect of step.effects) {
      if (effect.kind === 'start-stage') {
        const { incarnation, order } = effect;
        this.#of(host, order.load).stages.set(nameOf({ node: order.node, incarnation }), 'loading');
      } else if (effect.kind === 'attach-stage') this.#of(host, effect.load).stages.set(nameOf(effect), 'up');
      else if (effect.kind === 'stop-stage') this.#of(host, effect.load).stages.set(nameOf(effect), 'stopping');
    }
    for (const ring of step.state.rings.values()) if (isBack(ring)) this.#of(host, ring.load).lost = 0;
    for (const watched of this.#hosts.get(host)?.values() ?? []) {
      const isLoading = [...watched.stages.values()].includes('loading');
      watched.loadingSinceMs = isLoading ? (watched.loadingSinceMs ?? nowMs) : null;
    }
  }

  #heard(watched: Watched, input: Extract<Input, { readonly incarnation: number }>): void {
    const { stages } = watched;
    const name = nameOf(input);
    const was = stages.get(name);
    switch (input.kind) {
      case 'stage-loaded':
        if (was === 'loading') stages.set(name, 'up');
        return;
      case 'stage-lost':
        stages.delete(name);
        if (was === 'loading' || was === 'up') watched.lost += 1;
        return;
      case 'stage-stopped':
        stages.delete(name);
    }
  }

  /** R2: a load that is given up leaves no stage that was not ended. */
  #ended(host: HostName, load: LoadId): void {
    const left = [...(this.#hosts.get(host)?.get(load)?.stages.keys() ?? [])];
    this.#hosts.get(host)?.delete(load);
    if (left.length > 0)
      throw new Violation('R2', `a load ends on ${host} before its stage (node and start ${left.join(', ')})`);
  }

  #of(host: HostName, load: LoadId): Watched {
    const loads = this.#hosts.get(host) ?? new Map<LoadId, Watched>();
    this.#hosts.set(host, loads);
    const watched = loads.get(load) ?? { stages: new Map(), loadingSinceMs: null, lost: 0 };
    loads.set(load, watched);
    return watched;
  }
}

const nameOf = ({ node, incarnation }: { readonly node: NodeIndex; readonly incarnation: number }): string =>
  `${node}/${incarnation}`;

/** Where the head is, an outage is over when the ring is ready; elsewhere, when all that is here stands. */
const isBack = (ring: RingState): boolean =>
  ring.kind === 'live' && (ring.phase.kind === 'ready' || (ring.phase.kind === 'linked' && ring.head === null));
