/** Kept prefixes, seen in the head's frames and on the stages: adopted by their owner's sessions alone, and nothing besides kept. */
import type { CallId } from '../../agent/calls.ts';
import type { HeadState } from '../../agent/head/head-state.ts';
import type { LoadId, SessionId } from '../../protocol/ids.ts';
import type { TakenStep } from './checks.ts';
import type { ToyStage } from './toy-stage.ts';
import { Violation } from './violation.ts';

export class KeptCheck {
  /** By load and session: on whose behalf it was opened. */
  readonly #owners = new Map<string, string | null>();
  /** By call, which may have waited for its session. */
  readonly #callers = new Map<CallId, string | null>();
  /** By load and index: whose rows are kept there. */
  readonly #kept = new Map<string, SessionId>();

  taken({ input, step }: TakenStep): void {
    if (input.kind === 'open-session') this.#callers.set(input.call, input.owner);
    const [opened] = step.records.filter((record) => record.kind === 'session-opened');
    for (const effect of step.effects) {
      if (effect.kind !== 'reply' || effect.reply.kind !== 'session-opened' || opened === undefined) continue;
      const owner = this.#callers.get(effect.call) ?? null;
      this.#owners.set(`${opened.load}.${effect.reply.session}`, owner);
    }
    for (const effect of step.effects) {
      if (effect.kind !== 'send-frame') continue;
      const { load } = effect;
      for (const item of effect.items) {
        if (item.kind === 'keep') this.#kept.set(`${load}.${item.kept}`, item.session);
        if (item.kind === 'adopt') this.#adopted(load, item.session, this.#kept.get(`${load}.${item.kept}`));
      }
    }
  }

  #adopted(load: LoadId, session: SessionId, former: SessionId | undefined): void {
    const owner = this.#owners.get(`${load}.${session}`) ?? null;
    const formerOwner = former === undefined ? null : (this.#owners.get(`${load}.${former}`) ?? null);
    if (owner !== null && owner === formerOwner) return;
    throw new Violation('keys', `session ${session} of ${String(owner)} adopts rows of ${String(formerOwner)}`);
  }
}

/** A stage holds what the head says that it keeps, and nothing of any session. */
export function checkKept({ kept, slots }: HeadState, { node, engine }: ToyStage): void {
  const held = engine.rowsBySequence;
  for (const { index, tokens } of kept.entries) {
    const rows = held.get(slots.length + index) ?? 0;
    if (rows !== tokens.length) throw new Violation('leases', `stage ${node} keeps ${rows} of ${tokens.length} rows`);
  }
  if (held.size > kept.entries.length) throw new Violation('leases', `stage ${node} holds KV of nobody`);
}
