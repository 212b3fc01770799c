/**
 * A stage process: the real core of a stage over a toy model, with the time that starting, loading and computing take.
 *
 * It lives apart from its agent: an agent that ends leaves it with its weights, and a new data connection makes it empty.
 */
import { P4Error } from '../../protocol/errors.ts';
import type { Frame, FrameContent } from '../../protocol/hop-frame.ts';
import type { HopItem } from '../../protocol/hop-items.ts';
import { generation as parsedGeneration, type Generation, type HostName, type NodeIndex } from '../../protocol/ids.ts';
import type { StartStage } from '../../agent/effects.ts';
import { StageCore } from '../../stage/stage-core.ts';
import { StageCounters } from '../../stage/stage-counters.ts';
import type { Clock } from './clock.ts';
import type { SeededRandom } from './seeded-random.ts';
import { ToyEngine, ToySampler } from './toy-model.ts';
import { Violation } from './violation.ts';

export interface StageOutside {
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly host: HostName;
  /** Most that it takes to load, now and then. */
  readonly slowLoadMs: number;
  readonly loadsNotUntilMs: number;
  /** What a right agent never makes it do. */
  readonly broken: (violation: Violation) => void;
}

/** Whoever holds the data connection. */
export interface StageSink {
  output(frame: Frame): void;
}

export class ToyStage {
  readonly order: StartStage['order'];
  readonly incarnation: number;
  readonly generation: Generation;
  readonly #outside: StageOutside;
  readonly #core: StageCore;
  readonly engine: ToyEngine;
  life: 'starting' | 'loaded' | 'dead' = 'starting';
  /** G5: the next receipts are of another generation. */
  isStrange = false;
  #sink: StageSink | null = null;
  #computes = false;
  /** Not scheduled by its system: what it is told waits. */
  #stoppedAtMs: number | null = null;
  #heard: (() => void)[] = [];
  /** Told once when it is dead; those of an agent that ended hear nothing. */
  #watchers: ((error: P4Error) => void)[] = [];

  constructor({ order, incarnation }: StartStage, outside: StageOutside) {
    this.order = order;
    this.incarnation = incarnation;
    this.#outside = outside;
    const { ring, node, stages, contextTokens, sessions, keptPrefixes, decode, generation } = order.stage;
    this.generation = parsedGeneration(generation);
    this.engine = new ToyEngine({
      isFirst: node === 0,
      isFinal: node === stages - 1,
      sequences: sessions + keptPrefixes,
      cells: contextTokens * sessions,
      isExact: decode === 'exact',
      isQuickAlone: outside.random.oneIn(2),
    });
    this.#core = new StageCore({
      identity: {
        ...{ ring, node: order.node, stages, generation: this.generation },
        ...{ sessions, keptPrefixes, contextTokens },
      },
      engine: this.engine,
      openSampler: (sampling) => new ToySampler(sampling),
      counters: new StageCounters(),
      nowUs: () => outside.clock.nowMs * 1000 + this.engine.spentUs,
    });
  }

  get host(): HostName {
    return this.#outside.host;
  }

  /** How long its system has not let it run. */
  get silentForMs(): number {
    return this.#stoppedAtMs === null ? 0 : this.#outside.clock.nowMs - this.#stoppedAtMs;
  }

  get node(): NodeIndex {
    return this.order.node;
  }

  /** Starts the process and loads its slice. */
  begin(loaded: () => void): void {
    const { clock, random, slowLoadMs, loadsNotUntilMs } = this.#outside;
    const ms = random.between(5, 50) + random.between(20, random.oneIn(3) ? slowLoadMs : 300);
    clock.after(Math.max(ms, loadsNotUntilMs - clock.nowMs), () => {
      this.#hear(() => {
        if (this.life !== 'starting') return;
        this.life = 'loaded';
        loaded();
      });
    });
  }

  watch(watcher: (error: P4Error) => void): void {
    this.#watchers.push(watcher);
  }

  /** A new data connection, in place of the former one: frames and KV of before are gone. */
  attach(sink: StageSink, attached: () => void): void {
    const { clock, random } = this.#outside;
    this.#sink = null;
    clock.after(random.between(1, 20), () => {
      this.#hear(() => {
        if (this.life !== 'loaded') return;
        this.#core.reset();
        this.#sink = sink;
        attached();
      });
    });
  }

  /** @param sink a former connection's frames come to nothing */
  accept(frame: Frame, sink: StageSink): void {
    this.#outside.clock.after(0.1, () => {
      this.#hear(() => {
        if (this.life !== 'loaded' || this.#sink !== sink) return;
        this.#expectShapes(frame.items);
        this.#guarded(() => {
          this.#core.accept(frame);
        });
        this.#compute();
      });
    });
  }

  stopScheduling(forMs: number): void {
    if (this.#stoppedAtMs !== null) return;
    this.#stoppedAtMs = this.#outside.clock.nowMs;
    this.#outside.clock.after(forMs, () => {
      this.#stoppedAtMs = null;
      const heard = this.#heard;
      this.#heard = [];
      for (const hear of heard) this.#hear(hear);
    });
  }

  kill(error: P4Error): void {
    if (this.life === 'dead') return;
    this.life = 'dead';
    this.#sink = null;
    const watchers = this.#watchers;
    this.#watchers = [];
    for (const watcher of watchers) watcher(error);
  }

  #hear(hear: () => void): void {
    if (this.#stoppedAtMs !== null) this.#heard.push(hear);
    else hear();
  }

  #compute(): void {
    if (this.#computes || this.#core.waitingFrames === 0) return;
    this.#computes = true;
    const { clock, random } = this.#outside;
    clock.after(random.between(1, 8), () => {
      this.#hear(() => {
        this.#computes = false;
        // A new connection may have emptied it meanwhile.
        if (this.life !== 'loaded' || this.#core.waitingFrames === 0) return;
        this.#guarded(() => {
          const sink = this.#sink;
          const frame = this.#told(this.#core.step());
          clock.after(0.1, () => {
            if (this.life === 'loaded' && this.#sink === sink) sink?.output(frame);
          });
        });
        this.#compute();
      });
    });
  }

  /** A copy: the hidden state is the engine's until its next decode. */
  #told(content: FrameContent): Frame {
    const hidden = content.hidden instanceof Float32Array ? Float32Array.from(content.hidden) : null;
    const tokens = Uint32Array.from(content.tokens);
    const items = this.isStrange ? content.items.map((item) => this.#strange(item)) : content.items;
    const shape = { rows: tokens.length, width: hidden === null ? 0 : 1, wire: 'f32' } as const;
    return { ...content, ...shape, items, tokens, hidden };
  }

  #strange(item: HopItem): HopItem {
    if (item.kind !== 'end') return item;
    this.isStrange = false;
    const receipts = item.receipts.map((receipt) =>
      receipt.node === this.node
        ? { ...receipt, sourceGeneration: parsedGeneration((this.generation + 1n).toString()) }
        : receipt,
    );
    return { ...item, receipts };
  }

  #expectShapes(items: readonly HopItem[]): void {
    for (const item of items) {
      if (item.kind !== 'rows') continue;
      for (let row = 0; row < item.rowCount; row++) {
        this.engine.expectShape(item.slot, item.firstPosition + row, item.alone);
      }
    }
  }

  /** What contradicts what it was told before ends it; a right agent never does that. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (error instanceof Violation) this.#outside.broken(error);
      else if (error instanceof P4Error) {
        const facts = JSON.stringify(error.facts);
        this.#outside.broken(new Violation('stage', `${this.order.ring}.${this.node}: ${error.code} ${facts}`));
        this.kill(error);
      } else throw error;
    }
  }
}
