/** Asks the agents of a plan, again and again; one that does not answer keeps nobody waiting. */
import { setTimeout as pause } from 'node:timers/promises';

import { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { FleetConnection } from '../fleet-connection.ts';
import { askStatus, knownLoads, knownRings } from '../fleet-status.ts';
import { ringHosts, type OpenedPlan } from '../opened-plan.ts';
import type { StateFolder } from '../state-folder.ts';
import type { HostAnswer } from '../status-table.ts';
import { lookOf, type Look } from './look.ts';

export interface WatchedRingOrder {
  readonly opened: OpenedPlan;
  readonly state: StateFolder;
  readonly fleet: FleetConnection;
  /** Ends what is still being asked. */
  readonly signal: AbortSignal;
}

export class WatchedRing {
  readonly #order: WatchedRingOrder;
  /** Calls whose agents have not answered yet. */
  readonly #pending = new Map<HostName, Promise<HostAnswer>>();

  constructor(order: WatchedRingOrder) {
    this.#order = order;
  }

  /**
   * @param withinMs after which an agent is shown as silent; its answer may be part of a later look
   * @throws what reading the state folder throws; CANCELLED
   */
  async look(withinMs: number): Promise<Look> {
    const { opened, state, signal } = this.#order;
    const { plan } = opened;
    const answers = await Promise.all(ringHosts(plan).map((host) => this.#answer(host, withinMs)));
    signal.throwIfAborted();
    const known = knownRings(await knownLoads(plan, state), answers, state);
    return lookOf(Date.now(), answers, known);
  }

  async #answer(host: HostName, withinMs: number): Promise<HostAnswer> {
    const { fleet } = this.#order;
    const over = new AbortController();
    const late = pause(withinMs, null, { signal: over.signal }).catch(() => null);
    try {
      const answer = await Promise.race([this.#asked(host), late]);
      if (answer !== null) return answer;
      const address = fleet.isKnown(host) ? fleet.addressText(host) : '';
      const error = new P4Error('RPC_TIMED_OUT', { host, address, after: `${withinMs / 1000} s` });
      return { host, address, answer: { kind: 'error', error } };
    } finally {
      over.abort();
    }
  }

  #asked(host: HostName): Promise<HostAnswer> {
    const pending = this.#pending.get(host);
    if (pending !== undefined) return pending;
    const { opened, fleet, signal } = this.#order;
    const call = { host, ring: opened.plan.ring, samples: true, deadlineMs: limits.answerMs, signal };
    const asked = askStatus(fleet, call).finally(() => this.#pending.delete(host));
    this.#pending.set(host, asked);
    return asked;
  }
}
