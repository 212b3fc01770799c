/** R3: rows that run again have the company that they had when they first ran: none, or some. Seen in the head's frames. */
import type { Effect } from '../../agent/effects.ts';
import type { TakenStep } from './checks.ts';
import { Violation } from './violation.ts';

export class ShapeCheck {
  /** By load, session and position: whether the row had a frame of its own. */
  readonly #first = new Map<string, boolean>();
  /** By load and index: the session whose rows are kept there. */
  readonly #kept = new Map<string, number>();

  taken({ step }: TakenStep): void {
    for (const effect of step.effects) {
      if (effect.kind !== 'send-frame') continue;
      const ring = step.state.rings.get(effect.ring);
      // In `exact` every row has company.
      if (ring?.kind === 'live' && ring.plan.decode === 'fast') this.#frame(effect);
    }
  }

  #frame({ load, items }: Extract<Effect, { kind: 'send-frame' }>): void {
    const rows = items.reduce((sum, item) => sum + (item.kind === 'rows' ? item.rowCount : 0), 0);
    for (const item of items) {
      if (item.kind === 'keep') this.#kept.set(`${load}.${item.kept}`, item.session);
      if (item.kind === 'adopt') {
        const former = this.#kept.get(`${load}.${item.kept}`) ?? 0;
        for (let at = 0; at < item.length; at++) {
          this.#first.set(`${load}.${item.session}.${at}`, this.#first.get(`${load}.${former}.${at}`) ?? false);
        }
      }
      if (item.kind !== 'rows') continue;
      for (let at = item.firstPosition; at < item.firstPosition + item.rowCount; at++) {
        const key = `${load}.${item.session}.${at}`;
        if (item.phase !== 'recompute') this.#first.set(key, rows === 1);
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
