/** What a watch has seen so far, look by look. Pure. */
import { present } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import { planDigest } from '../../protocol/plan-digest.ts';
import type { Plan } from '../../protocol/plan.ts';
import type { MergedRing } from '../status-table.ts';
import { mergedRings } from '../status-table.ts';
import { decayOf, firstHourOf, noSpeed, noteSpeed, speedReading, type Decay, type SpeedState } from './decay.ts';
import type { Look } from './look.ts';
import { problemsOf, type Problem } from './problems.ts';
import { fullestKv, ringFigures, type RingFigures } from './ring-figures.ts';
import { ValueSpan } from './sample-values.ts';

/** What there is to show. */
export interface RingView {
  readonly plan: Plan;
  /** In milliseconds since 1970. */
  readonly takenAt: number;
  /** `null` where no host that answers has a part of it. */
  readonly ring: MergedRing | null;
  readonly figures: RingFigures;
  readonly decay: Decay;
  /** Tokens per second between looks, oldest first; `null` where it is not known. */
  readonly history: readonly (number | null)[];
  readonly problems: readonly Problem[];
  readonly isReady: boolean;
}

export interface WatchState {
  readonly plan: Plan;
  readonly digest: string;
  /** Those that rates are taken over, oldest first. */
  readonly looks: readonly Look[];
  readonly history: readonly (number | null)[];
  readonly speed: SpeedState;
}

export const beginWatch = (plan: Plan): WatchState => ({
  plan,
  digest: planDigest(plan),
  looks: [],
  history: [],
  speed: noSpeed,
});

export function takeLook(state: WatchState, look: Look): WatchState {
  const { plan, looks, history } = state;
  const { host } = headOf(plan);
  const head = look.values.get(host);
  const former = looks.at(-1)?.values.get(host);
  // An agent that is asked twice within a second says the same twice: the next look tells what came of it.
  const isSame = head !== undefined && former?.process === head.process && former.atSeconds === head.atSeconds;
  const rate = ValueSpan.between(former, head)?.rate('p4_ring_generated_tokens_total', { ring: plan.ring }) ?? null;
  const isFirst = looks.length === 0;
  return {
    ...state,
    looks: isSame ? [...looks.slice(0, -1), look] : recent([...looks, look]),
    history: isSame || isFirst ? history : [...history, rate].slice(-limits.watchHistory),
    speed: notedSpeed(state, look),
  };
}

const headOf = (plan: Plan): Plan['stages'][number] => present(plan.stages[0], 'a plan has a head');

/** The latest look, and those before it that are not older than a stretch; always one more, so that there is a span. */
function recent(looks: readonly Look[]): readonly Look[] {
  const latest = looks.at(-1)?.takenAt ?? 0;
  const first = looks.findIndex(({ takenAt }) => latest - takenAt <= limits.speedStretchMs);
  return looks.slice(Math.max(0, Math.min(first, looks.length - 2)));
}

function notedSpeed({ plan, speed }: WatchState, look: Look): SpeedState {
  const head = look.values.get(headOf(plan).host);
  if (head === undefined) return speed;
  const share = (fullestKv(plan, look) ?? 0) / (plan.contextTokens * plan.sessions);
  const reading = speedReading(head, plan.ring, share);
  return reading === null ? speed : noteSpeed(speed, reading);
}

/** `null` before the first look. */
export function viewOf({ plan, digest, looks, history, speed }: WatchState): RingView | null {
  const look = looks.at(-1);
  if (look === undefined) return null;
  const before = looks.length > 1 ? (looks[0] ?? null) : null;
  const head = look.values.get(headOf(plan).host);
  const ring = mergedRings(look.answers, look.known).find((each) => each.ring === plan.ring) ?? null;
  const problems = problemsOf({ plan, digest, look, ring });
  return {
    ...{ plan, takenAt: look.takenAt, ring, history, problems },
    figures: ringFigures(plan, before, look),
    decay: decayOf(speed, head === undefined ? [] : firstHourOf(head, plan.ring)),
    isReady: ring?.health.word === 'ready' && problems.every(({ weight }) => weight === 'note'),
  };
}
