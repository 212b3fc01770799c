/** Whether a ring grows slower as its journals grow: from runs to figures. Pure. */
import { present } from '../../protocol/assert.ts';
import { tableLines } from '../../provisioner/text-table.ts';
import type { PartReport } from './part.ts';
import type { JournalSize } from './ring-arm.ts';
import { mean, pairedRatios, spreadOf, spreadText, type Spread } from './statistics.ts';
import { atLeast, type Verdict } from './verdict.ts';

/** One answer of the ring and of the uncut model: milliseconds from token to token. */
export interface DecayPair {
  readonly ringMs: readonly number[];
  readonly uncutMs: readonly number[];
}

export interface DecayRun {
  readonly pairs: readonly DecayPair[];
  /** Of both agents together. */
  readonly before: JournalSize;
  readonly after: JournalSize;
}

export interface DecayFigures {
  readonly name: string;
  readonly tokensPerSecond: Spread;
  readonly uncutTokensPerSecond: Spread;
  /** The ring's speed as a part of the uncut model's, against the first of its kind. */
  readonly ratio: Spread;
}

const target = 0.99;
const quarters = 4;

/** @param long its answers are compared by their quarters */
export function decayReport({
  runs,
  long,
}: {
  readonly runs: readonly DecayRun[];
  readonly long: DecayRun;
}): PartReport {
  const ofRuns = figuresOf(
    runs.map(({ pairs }) => pairs),
    (index) => `run ${String(index + 1)}`,
  );
  const ofQuarters = figuresOf(
    Array.from({ length: quarters }, (_, index) => long.pairs.map((pair) => quarterOf(pair, index))),
    (index) => `long, quarter ${String(index + 1)}`,
  );
  const all = [...ofRuns, ...ofQuarters];
  const journals = [...runs, long].map(({ before, after }) => ({ before, after }));
  return {
    figures: { runs: ofRuns, quarters: ofQuarters, journals },
    blocks: [
      [
        ...tableLines(
          [
            { title: 'two agents, journals growing', align: 'left' },
            { title: 'ring, tokens/s', align: 'right' },
            { title: 'uncut, tokens/s', align: 'right' },
            { title: 'ring / uncut, against the first', align: 'right' },
          ],
          all.map(({ name, tokensPerSecond, uncutTokensPerSecond, ratio }) => [
            name,
            spreadText(tokensPerSecond, 1),
            spreadText(uncutTokensPerSecond, 1),
            spreadText(ratio, 3),
          ]),
        ),
        journalLine(present(runs[0], 'there is a first run').before, long.after),
      ],
    ],
    verdicts: [...verdictsOn(ofRuns), ...verdictsOn(ofQuarters)],
  };
}

const journalLine = (first: JournalSize, last: JournalSize): string =>
  `The journals grew from ${String(first.records)} records to ${String(last.records)}, ` +
  `from ${mebibytes(first)} MiB to ${mebibytes(last)} MiB.`;

const mebibytes = ({ bytes }: JournalSize): string => (bytes / 2 ** 20).toFixed(1);

const verdictsOn = ([, ...others]: readonly DecayFigures[]): readonly Verdict[] =>
  others.map(({ name, ratio: found }) =>
    atLeast(target, { figure: `decode beside the uncut model, ${name} / first`, found }),
  );

/** Each answer is compared with the one at the same place among the first. */
function figuresOf(
  groups: readonly (readonly DecayPair[])[],
  nameOf: (index: number) => string,
): readonly DecayFigures[] {
  const relative = groups.map((pairs) => pairs.map(({ ringMs, uncutMs }) => mean(uncutMs) / mean(ringMs)));
  const first = present(relative[0], 'there is a first');
  return groups.map((pairs, index) => ({
    name: nameOf(index),
    tokensPerSecond: spreadOf(pairs.map(({ ringMs }) => 1000 / mean(ringMs))),
    uncutTokensPerSecond: spreadOf(pairs.map(({ uncutMs }) => 1000 / mean(uncutMs))),
    ratio: spreadOf(pairedRatios(present(relative[index], 'each has its ratios'), first)),
  }));
}

function quarterOf({ ringMs, uncutMs }: DecayPair, index: number): DecayPair {
  const part = (times: readonly number[]): readonly number[] =>
    times.slice(Math.floor((index * times.length) / quarters), Math.floor(((index + 1) * times.length) / quarters));
  return { ringMs: part(ringMs), uncutMs: part(uncutMs) };
}
