/**
 * A view of a ring as lines: what it gives, whether it slows down, its stages and links, what is wrong. Pure.
 *
 * Where all does not fit the screen, stages and links share lines; where that does not either, the stages are a window that
 * keys move.
 */
import { durationText, healthText } from '../ring-health.ts';
import type { RingFigures } from './ring-figures.ts';
import { stagePicture } from './stage-lines.ts';
import { lineWidth, renderedLine, span, wrapped, type Line, type Style, type Tone } from './styled-line.ts';
import { summaryLines } from './summary-lines.ts';
import type { RingView } from './watch-state.ts';

export interface Paper {
  readonly style: Style;
  /** Columns. */
  readonly width: number;
  /** Lines; `null` for as many as it takes. */
  readonly height: number | null;
}

/** What stands on a live picture besides the ring. */
export interface LiveMarks {
  readonly intervalSeconds: number;
  readonly isPaused: boolean;
  readonly hasHelp: boolean;
  /** Lines of stages that are scrolled out at the top. */
  readonly scroll: number;
}

/** Narrowest that is laid out; on less, lines are cut. */
const leastWidth = 40;

/** @param live `null` for a picture that stands by itself */
export function ringPicture(view: RingView, paper: Paper, live: LiveMarks | null): readonly string[] {
  const width = Math.max(leastWidth, paper.width);
  const { style, height } = paper;
  const top = [...titleLines(view, { width, live, style }), [], ...summaryLines(view, { width, style }), []];
  const bottom = [...problemLines(view, width), ...(live === null ? [] : footerLines(live, style))];
  const room = { paper, width, taken: top.length + bottom.length, scroll: live?.scroll ?? 0 };
  const middle = live?.hasHelp === true ? helpLines(width) : stageLines(view.figures, room);
  const lines = [...top, ...middle, ...bottom];
  const shown = height === null ? lines : lines.slice(0, height);
  return shown.map((line) => renderedLine(line, paper.width, style.colour));
}

/** How far the stages of a picture can be scrolled. */
export const scrollMost = ({ figures }: RingView): number => Math.max(0, figures.stages.length - 1);

const healthTones: Readonly<Record<'ready' | 'degraded' | 'changing', Tone>> = {
  ready: 'good',
  degraded: 'bad',
  changing: 'warning',
};

interface TitleLook {
  readonly width: number;
  readonly live: LiveMarks | null;
  readonly style: Style;
}

function titleLines({ plan, ring, takenAt, figures }: RingView, { width, live, style }: TitleLook): readonly Line[] {
  const health = ring === null ? 'not loaded' : healthText(ring.parts, ring.health);
  const tone = ring === null ? 'bad' : healthTones[ring.health.word];
  const time = new Date(takenAt).toTimeString().slice(0, 8);
  const right = live === null ? time : `${live.isPaused ? 'paused at' : `every ${live.intervalSeconds} s`} ${time}`;
  const indent = plan.ring.length + 2;
  const [first = '', ...more] = wrapped(health, Math.max(1, width - indent - right.length - 2));
  const loaded = figures.loadedAtSeconds;
  const hosts = new Set(plan.stages.map(({ host }) => host)).size;
  const parts = [
    `${count(plan.stages.length, 'stage')} on ${count(hosts, 'host')}`,
    ...(loaded === null ? [] : [`loaded ${durationText(Math.max(0, takenAt - loaded * 1000))} ago`]),
  ];
  const head: Line = [span(plan.ring, 'strong'), span(`  ${first}`, tone)];
  return [
    [...head, span(right.padStart(width - lineWidth(head)), live?.isPaused === true ? 'warning' : 'faint')],
    ...more.map((text): Line => [span(`${' '.repeat(indent)}${text}`, tone)]),
    [span(parts.join(` ${style.marks.separator} `), 'faint')],
  ];
}

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`;

interface StageRoom {
  readonly paper: Paper;
  readonly width: number;
  /** Lines that others take. */
  readonly taken: number;
  readonly scroll: number;
}

function stageLines(figures: RingFigures, { paper, width, taken, scroll }: StageRoom): readonly Line[] {
  const { height, style } = paper;
  const { marks } = style;
  const whole = stagePicture(figures, { form: 'whole', width, marks });
  const left = height === null ? Infinity : height - taken - 1;
  if (whole.lines.length <= left) return [whole.heading, ...whole.lines];
  const { heading, lines } = stagePicture(figures, { form: 'short', width, marks });
  if (lines.length <= left) return [heading, ...lines];
  const shown = Math.max(1, left - 1);
  const from = Math.max(0, Math.min(scroll, lines.length - shown));
  const rest = `     ${from} above, ${Math.max(0, lines.length - from - shown)} below: j and k move`;
  return [heading, ...lines.slice(from, from + shown), [span(rest, 'faint')]];
}

function problemLines({ problems }: RingView, width: number): readonly Line[] {
  if (problems.length === 0) return [];
  const lines = problems.flatMap(({ weight, host, text }) => {
    const tone = weight === 'fault' ? 'bad' : 'warning';
    const own = wrapped(host === '' ? text : `${host}: ${text}`, width - 2);
    return own.map((line, place): Line => [span(place === 0 ? '! ' : '  ', tone), span(line, tone)]);
  });
  return [[], ...lines];
}

function footerLines({ isPaused }: LiveMarks, { marks }: Style): readonly Line[] {
  const keys = ['q quit', `p ${isPaused ? 'go on' : 'pause'}`, '+ - interval', 'j k move', '? help'];
  return [[], [span(keys.join(` ${marks.separator} `), 'faint')]];
}

/** In the place of the stages. */
const helpLines = (width: number): readonly Line[] =>
  [
    'DECODE: mean time of one decode of the stage.',
    'IDLE: share of the time with work in the ring in which the stage had none.',
    'hop: over the network and back, without the time at the receiver.',
    'decay: speed now against then, at equal load. 1 is as fast, 0.9 a tenth slower.',
    'Rates and means are those of the last ten seconds, or between two looks that are further apart.',
    'p or space pauses, + looks less often, - more often, j and k or arrows move through stages, q or Ctrl-C ends.',
  ].flatMap((text) => wrapped(text, width).map((line): Line => [span(line)]));
