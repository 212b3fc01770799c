/**
 * Lines of text with tones, cut to a width, and turned into what a terminal understands. Pure.
 *
 * A character is one column wide: names of hosts and rings are ASCII, and so is what agents say.
 */

/** What a piece of text means; without colour it is just text. */
export type Tone = 'plain' | 'strong' | 'faint' | 'good' | 'warning' | 'bad';

export interface Span {
  readonly text: string;
  readonly tone: Tone;
}

export type Line = readonly Span[];

/** What a picture is drawn with. */
export interface Style {
  readonly colour: boolean;
  readonly marks: Marks;
}

/** Characters that draw. Each is one column wide. */
export interface Marks {
  /** From low to high. */
  readonly levels: readonly string[];
  readonly full: string;
  readonly empty: string;
  /** Left edge of a ring: at its head, beside a stage, at a link, and at the way home. */
  readonly head: string;
  readonly side: string;
  readonly hop: string;
  readonly home: string;
  readonly separator: string;
}

export const unicodeMarks: Marks = {
  levels: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
  ...{ full: '█', empty: '░', separator: '·' },
  ...{ head: '╭─▶', side: '│  ', hop: '│ ↓', home: '╰─◀' },
};

/** Where only ASCII is certain to be seen. */
export const plainMarks: Marks = {
  levels: ['.', ':', '-', '=', '+', '*', '%', '#'],
  ...{ full: '#', empty: '.', separator: '-' },
  ...{ head: '+->', side: '|  ', hop: '| v', home: '+-<' },
};

/** Colours of the terminal's own palette, so that they suit its background. */
const codes: Readonly<Record<Tone, string>> = {
  plain: '',
  strong: '\x1b[1m',
  faint: '\x1b[2m',
  good: '\x1b[32m',
  warning: '\x1b[33m',
  bad: '\x1b[31m',
};

export const span = (text: string, tone: Tone = 'plain'): Span => ({ text, tone });

/** @param width columns; what is beyond is cut off */
export function renderedLine(line: Line, width: number, colour: boolean): string {
  let room = width;
  let text = '';
  for (const { text: whole, tone } of line) {
    const shown = printable(whole).slice(0, room);
    room -= shown.length;
    text += colour && tone !== 'plain' && shown !== '' ? `${codes[tone]}${shown}\x1b[0m` : shown;
  }
  return colour ? text : text.trimEnd();
}

/** An agent's words must not move the cursor. */
// eslint-disable-next-line no-control-regex -- these are what is taken out
const printable = (text: string): string => text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, ' ');

export const lineWidth = (line: Line): number => line.reduce((sum, { text }) => sum + text.length, 0);

/** Words on as many lines as they need; a word that is longer than a line is broken. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').filter((each) => each !== '')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (longer.length <= width) {
      line = longer;
      continue;
    }
    if (line !== '') lines.push(line);
    line = word;
    while (line.length > width) {
      lines.push(line.slice(0, width));
      line = line.slice(width);
    }
  }
  return line === '' ? lines : [...lines, line];
}
