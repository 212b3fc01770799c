/** The meters of all loads of this host, fed with what the shell takes and what the journal has made durable. */
import type { HopItem } from '../../protocol/hop-items.ts';
import type { HostName, LoadId } from '../../protocol/ids.ts';
import { runningRequests } from '../head/head-state.ts';
import type { InputKind } from '../inputs.ts';
import type { JournalRecord } from '../records.ts';
import { isUpHere } from '../ring-standing.ts';
import type { AgentState, RingState } from '../state.ts';
import { RingMeter } from './ring-meter.ts';

/** What the shell tells of its steps. */
export interface StepMeter {
  /** A step is taken; its effects have not run. */
  taken(kind: InputKind, records: readonly JournalRecord[], state: AgentState): void;
  /** The records are durable; what waits for them runs next. */
  durable(records: readonly JournalRecord[]): void;
}

export interface RingMetersOptions {
  /** Told of a suspension, with the code of what was lost. */
  readonly suspended: (code: string) => void;
  /** A clock that only goes forward, in milliseconds. */
  readonly nowMs: () => number;
}

export class RingMeters implements StepMeter {
  readonly #options: RingMetersOptions;
  readonly #byLoad = new Map<LoadId, RingMeter>();

  constructor(options: RingMetersOptions) {
    this.#options = options;
  }

  /** `undefined` for a load that this host has nothing of. */
  of(load: LoadId): RingMeter | undefined {
    return this.#byLoad.get(load);
  }

  taken(kind: InputKind, records: readonly JournalRecord[], state: AgentState): void {
    // Of what comes with every token only a probe changes how a ring stands, and that leaves a record.
    let changes = kind !== 'returned' && kind !== 'frame-finished';
    for (const record of records) {
      if (record.kind === 'ring-ready' || record.kind === 'ring-suspended') changes = true;
      if (record.kind === 'request-admitted')
        this.#byLoad.get(record.load)?.requestAdmitted(record, this.#options.nowMs());
      if (record.kind === 'token-emitted')
        this.#byLoad.get(record.load)?.tokenDrawn(record.request, this.#options.nowMs());
    }
    if (changes) this.#look(state);
  }

  durable(records: readonly JournalRecord[]): void {
    const nowMs = this.#options.nowMs();
    for (const record of records) {
      const meter = this.#byLoad.get(record.load);
      if (meter === undefined) continue;
      switch (record.kind) {
        case 'token-emitted':
          meter.tokenDurable(record.request, nowMs);
          break;
        case 'request-ended':
          meter.requestEnded(record, nowMs);
          break;
        case 'request-settled':
          meter.settled += 1;
          break;
        case 'node-changed':
          if (record.to === 'lost') meter.stageLost(record.node);
          break;
        case 'load-admitted':
        case 'load-told':
        case 'ring-ready':
        case 'ring-suspended':
        case 'load-ended':
        case 'session-opened':
        case 'session-closed':
        case 'request-admitted':
      }
    }
  }

  fed(load: LoadId, items: readonly HopItem[]): void {
    this.#byLoad.get(load)?.fed(items, this.#options.nowMs());
  }

  #look({ rings, host }: AgentState): void {
    const nowMs = this.#options.nowMs();
    for (const ring of rings.values()) this.#stands(ring, host, nowMs);
    if (this.#byLoad.size === rings.size) return;
    for (const { ring, load } of this.#byLoad.values()) if (rings.get(ring)?.load !== load) this.#byLoad.delete(load);
  }

  #stands(ring: RingState, host: HostName, nowMs: number): void {
    const meter = this.#byLoad.get(ring.load) ?? this.#begun(ring, nowMs);
    const before = meter.suspensions;
    const isSuspended = ring.kind === 'claimed' || ring.suspension !== null;
    meter.stands({ isUp: isUpHere(ring, host), isSuspended }, nowMs);
    if (meter.suspensions === before || ring.kind === 'claimed' || ring.suspension === null) return;
    this.#options.suspended(ring.suspension.error.code);
  }

  #begun(ring: RingState, nowMs: number): RingMeter {
    const requests = ring.kind === 'live' && ring.head !== null ? ring.head.requests : ring.memory.requests;
    const meter = new RingMeter({ ring: ring.ring, load: ring.load, running: runningRequests(requests), nowMs });
    this.#byLoad.set(ring.load, meter);
    return meter;
  }
}
