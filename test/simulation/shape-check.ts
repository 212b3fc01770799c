/** R3: rows that run again have the company that they had when they first ran: none, or some. Seen in the head's frames. */
import type { Effect } from '../../agent/effects.ts';
import type { HeadState } from '../../agent/head/head-state.ts';
import type { LoadId } from '../../protocol/ids.ts';
import type { TakenStep } from './checks.ts';
import { Violation } from './violation.ts';

export class ShapeCheck {
  /** By load, session and position: whether the row was to be decoded by itself. */
  readonly #first = new Map<string, boolean>();
  /** By load and index: the session whose rows are kept there. */
  readonly #kept = new Map<string, number>();
  /** A prefix that is taken over is that of the moment when the head says so: its word may be lost on its way to the stages. */
  readonly #heard = new WeakSet<HeadState['outbox'][number]>();

  taken({ step }: TakenStep): void {
    for (const effect of step.effects) {
      if (effect.kind !== 'send-frame') continue;
      const ring = step.state.rings.get(effect.ring);
      // In `exact` every row has company.
      if (ring?.kind === 'live' && ring.plan.decode === 'fast') this.#frame(effect);
    }
    for (const ring of step.state.rings.values()) {
      if (ring.kind === 'live' && ring.head !== null) this.#hear(ring.load, ring.head.outbox);
    }
  }

  #hear(load: LoadId, items: HeadState['outbox']): void {
    for (const item of items) {
      if ((item.kind !== 'keep' && item.kind !== 'adopt') || this.#heard.has(item)) continue;
      this.#heard.add(item);
      const place = `${load}.${item.kept}`;
      if (item.kind === 'keep') {
        this.#kept.set(place, item.session);
        continue;
      }
      const former = this.#kept.get(place) ?? 0;
      for (let at = 0; at < item.length; at++) {
        this.#first.set(`${load}.${item.session}.${at}`, this.#first.get(`${load}.${former}.${at}`) ?? false);
      }
    }
  }

  #frame({ load, items }: Extract<Effect, { kind: 'send-frame' }>): void {
    this.#hear(load, items);
    for (const item of items) {
      if (item.kind !== 'rows') continue;
      for (let at = item.firstPosition; at < item.firstPosition + item.rowCount; at++) {
        const key = `${load}.${item.session}.${at}`;
        // That a stage does what the item says, the toy engine sees.
        if (item.phase !== 'recompute') this.#first.set(key, item.alone);
        else if (this.#first.get(key) !== item.alone) {
          throw new Violation(
            'R3',
            `row ${at} of session ${item.session} ran ${item.alone ? 'in company' : 'alone'} at first`,
          );
        }
      }
    }
  }
}
