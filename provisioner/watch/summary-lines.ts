/** What a ring gives, whether it slows down, who waits for it, and how its journals grow: a line each, or what it takes. Pure. */
import { decayedShare, slowShare } from '../../protocol/speed-level.ts';
import { bytesText } from '../text-table.ts';
import type { Decay } from './decay.ts';
import { orUnknown, percentText, rateText, sparkline, unknown } from './figure-text.ts';
import type { JournalFigures, RingFigures } from './ring-figures.ts';
import { span, wrapped, type Line, type Style, type Tone } from './styled-line.ts';
import type { RingView } from './watch-state.ts';

const labelColumns = 11;

export interface SummaryLook {
  readonly width: number;
  readonly style: Style;
}

export function summaryLines({ figures, decay, history }: RingView, look: SummaryLook): readonly Line[] {
  const { separator } = look.style.marks;
  const { sessionsOpen, sessionsLimit, sessionsWaiting, requestsRunning, requestsWaiting } = figures;
  const waiting = [
    `${known(requestsRunning)} running, ${known(requestsWaiting)} waiting`,
    `sessions ${known(sessionsOpen)} of ${known(sessionsLimit)}, ${known(sessionsWaiting)} waiting`,
  ];
  return [
    speedLine(figures, history, look),
    ...decayLines(decay, look),
    ...labelled('requests', waiting.join(` ${separator} `), look),
    ...labelled('kv cache', kvText(figures), look),
    ...figures.journals.map((journal, place) =>
      labelledLine(place === 0 ? 'journal' : '', journalSpanText(journal, figures.journals), journalTone(journal)),
    ),
  ];
}

const known = (value: number | null): string => orUnknown(value, String);

function speedLine(
  { tokensPerSecond, promptTokensPerSecond }: RingFigures,
  history: RingView['history'],
  look: SummaryLook,
): Line {
  const rate = orUnknown(tokensPerSecond, rateText).padStart(5);
  const most = Math.max(0, ...history.map((value) => value ?? 0));
  const beside = `  prompt ${orUnknown(promptTokensPerSecond, rateText)}${most === 0 ? '' : `, most ${rateText(most)}`}`;
  const room = look.width - labelColumns - rate.length - 2 - beside.length;
  const spark = sparkline(history, room, look.style.marks);
  return [
    label('tokens/s'),
    span(rate, 'strong'),
    span('  '),
    span(spark, 'good'),
    span(spark === '' ? beside.slice(2) : beside, 'faint'),
  ];
}

function decayLines(decay: Decay, look: SummaryLook): readonly Line[] {
  switch (decay.kind) {
    case 'unknown':
      return [labelledLine('decay', `${unknown} ${decayWhy[decay.why]}`, 'faint')];
    case 'known': {
      const { ratio, against, level } = decay;
      const tone = ratio < 1 - slowShare ? 'bad' : ratio < 1 - decayedShare ? 'warning' : 'plain';
      const text = `${ratio.toFixed(2)} of ${against === 'first-hour' ? 'the first hour of this load' : 'when this watch began'}`;
      const where = `at equal load: ${level.running} running, ${level.context} of the context, ${level.prompt} prompt rows a token`;
      return [labelledLine('decay', text, tone), ...wrappedUnder(where, look.width)];
    }
  }
}

const decayWhy: Readonly<Record<Extract<Decay, { kind: 'unknown' }>['why'], string>> = {
  'nothing-decoded': '(nothing was decoded since this watch began)',
  'too-little-decoded': '(not enough was decoded at this load)',
};

const kvText = ({ kvCellsUsed: used, kvCellsLimit: limit }: RingFigures): string =>
  `${known(used)} of ${known(limit)} cells${used === null || limit === null || limit === 0 ? '' : `, ${percentText(used / limit)}`}`;

function journalSpanText(journal: JournalFigures, all: readonly JournalFigures[]): string {
  const names = Math.max(...all.map(({ host }) => host.length));
  const bytes = `${orUnknown(journal.bytes, bytesText)} of ${orUnknown(journal.limitBytes, bytesText)}`;
  const grows = `${known(journal.records)} records, ${orUnknown(journal.recordsPerSecond, (each) => `+${rateText(each)}`)}/s`;
  const what = journal.bytes === null ? 'no answer' : `${bytes}, ${grows}`;
  const state = journal.state === 'open' || journal.state === 'silent' ? '' : ` (${journal.state})`;
  return `${journal.host.padEnd(names)}  ${what}${state}`;
}

const journalTone = ({ state }: JournalFigures): Tone => (state === 'open' ? 'plain' : 'bad');

const label = (name: string): Line[number] => span(name.padEnd(labelColumns), 'faint');
const labelledLine = (name: string, text: string, tone: Tone = 'plain'): Line => [label(name), span(text, tone)];

function labelled(name: string, text: string, { width }: SummaryLook): readonly Line[] {
  const lines = wrapped(text, width - labelColumns);
  return lines.map((line, place) => labelledLine(place === 0 ? name : '', line));
}

const wrappedUnder = (text: string, width: number): readonly Line[] =>
  wrapped(text, width - labelColumns).map((line) => labelledLine('', line, 'faint'));
