/**
 * For tests: two sessions that talk in turns, and the same talk with a loss in its middle, after which they are brought
 * back as the head does it: leases and requests anew, KV recomputed in the shape classes of before (R3), then on as if
 * nothing had been.
 */
import { present } from '../protocol/assert.ts';
import type { Frame } from '../protocol/hop-frame.ts';
import type { HopItem, Receipt } from '../protocol/hop-items.ts';
import { tokenId } from '../protocol/ids.ts';
import { defaultSampling, type Sampling } from '../protocol/sampling.ts';
import { greedy, headFrame, itemsOf, roundRing, TestSession, type TestStage } from './core-fixture.ts';

export type TalkStep =
  /** Goes all the way round; the talk wants to hear what came out. */
  | { readonly kind: 'round'; readonly frame: Frame }
  /** Every stage begins anew; `underWay` was on its way round at that moment. */
  | { readonly kind: 'loss'; readonly underWay: Frame };

export interface TalkPlan {
  /** Turns before the loss; `null` for none. */
  readonly lossAfter: number | null;
  /** Recomputes all rows together, in whatever shape class they were before. */
  readonly forgetsShapes?: boolean;
}

export interface Said {
  /** Of each session. */
  readonly tokens: readonly (readonly number[])[];
  readonly receipts: readonly Receipt[];
}

export type Talk = Generator<TalkStep, Said, readonly HopItem[]>;

const first: Speech = {
  prompt: [0, 379, 395, 264, 364, 12],
  sampling: { ...defaultSampling, seed: 42, temperature: 1, repeatPenalty: 1.3, frequencyPenalty: 0.2 },
};
const second: Speech = { prompt: [0, 500, 501, 502, 503], sampling: { ...greedy, grammar: 'root ::= [^x]*' } };

/** Who speaks in each turn: two together are one decode, one is a decode of its own. */
const turns: readonly (readonly (0 | 1)[])[] = [
  ...[[0], [0], [0, 1], [1], [0, 1], [0, 1], [0, 1], [0], [1], [0, 1]],
  ...[[1], [0], [0], [0, 1], [0, 1], [1], [0], [0, 1], [1], [0]],
] as const;

export const talkTurns = turns.length;

export function* talk({ lossAfter, forgetsShapes = false }: TalkPlan): Talk {
  const speakers = [new Speaker(0, first), new Speaker(1, second)];
  for (const speaker of speakers) hear(speakers, yield round([speaker.opening()]));
  for (const [turn, who] of turns.entries()) {
    const speaking = who.map((number) => present(speakers[number], 'there are two'));
    if (turn === lossAfter) {
      const { frame } = round(speaking.map((speaker) => speaker.peek(speaking.length === 1)));
      yield { kind: 'loss', underWay: frame };
      // In one frame: what is `alone` in it is decoded by itself all the same.
      hear(speakers, yield round(speakers.map((speaker) => speaker.comeBack(forgetsShapes))));
    }
    hear(speakers, yield round(speaking.map((speaker) => speaker.next(speaking.length === 1))));
  }
  const ends = yield round(speakers.map((speaker) => ({ items: [speaker.session.end], tokens: [] })));
  const receipts = ends.flatMap((item) => (item.kind === 'end' ? item.receipts : []));
  return { tokens: speakers.map(({ drawn }) => drawn), receipts };
}

/** The talk over stages of this process. */
export function tell(stages: readonly TestStage[], talking: Talk): Said {
  let step = talking.next();
  while (step.done !== true) {
    if (step.value.kind === 'round') {
      step = talking.next(itemsOf(roundRing(stages, step.value.frame)));
      continue;
    }
    // The head has run what is under way, for the next stage it waits; on the tail it draws nothing any more.
    const [head, next] = stages;
    if (next === undefined) present(head, 'there is a head').core.accept(step.value.underWay);
    else for (const frame of present(head, 'there is a head').run(step.value.underWay)) next.core.accept(frame);
    for (const { core } of stages) core.reset();
    step = talking.next([]);
  }
  return step.value;
}

interface Speech {
  readonly prompt: readonly number[];
  readonly sampling: Sampling;
}

/** Items, and the tokens of their rows. */
interface Part {
  readonly items: readonly HopItem[];
  readonly tokens: readonly number[];
}

class Speaker {
  session: TestSession;
  readonly drawn: number[] = [];
  readonly #number: number;
  readonly #speech: Speech;
  /** Of each drawn token whose row ran: whether it ran by itself. */
  readonly #alone: boolean[] = [];

  constructor(number: number, speech: Speech) {
    this.session = new TestSession(number);
    this.#number = number;
    this.#speech = speech;
  }

  opening(): Part {
    const { prompt, sampling } = this.#speech;
    const { session } = this;
    return { items: [session.open, session.begin(sampling), session.prefill(prompt.length, true)], tokens: prompt };
  }

  next(alone: boolean): Part {
    this.#alone.push(alone);
    return this.peek(alone);
  }

  peek(alone: boolean): Part {
    return { items: [this.session.decode(this.drawn.length, alone)], tokens: this.drawn.slice(-1) };
  }

  comeBack(forgetsShapes: boolean): Part {
    const { prompt, sampling } = this.#speech;
    const session = new TestSession(this.#number);
    this.session = session;
    const begin = session.begin(sampling, {
      ran: { prefilled: prompt.length, decoded: this.#alone.length },
      history: prompt.map(tokenId),
      drawn: this.drawn.map(tokenId),
    });
    const shapes = this.#alone.map((alone) => alone && !forgetsShapes);
    const stretched = [{ count: prompt.length, alone: false }, ...stretches(shapes)];
    return {
      items: [session.open, begin, ...stretched.map(({ count, alone }) => session.recompute(count, alone))],
      tokens: [...prompt, ...this.drawn.slice(0, shapes.length)],
    };
  }
}

/** Rows that ran by themselves one by one, the others in stretches. */
function stretches(shapes: readonly boolean[]): { readonly count: number; readonly alone: boolean }[] {
  const found: { count: number; alone: boolean }[] = [];
  for (const alone of shapes) {
    const last = found.at(-1);
    if (last !== undefined && !alone && !last.alone) last.count += 1;
    else found.push({ count: 1, alone });
  }
  return found;
}

function round(parts: readonly Part[]): Extract<TalkStep, { kind: 'round' }> {
  const items = parts.flatMap((part) => part.items);
  const tokens = parts.flatMap((part) => part.tokens);
  return { kind: 'round', frame: headFrame(items, tokens) };
}

function hear(speakers: readonly Speaker[], items: readonly HopItem[]): void {
  for (const item of items) {
    if (item.kind !== 'token') continue;
    const speaker = speakers.find(({ session }) => session.session === item.session);
    present(speaker, 'a speaker hears it').drawn.push(item.token);
  }
}
