/** What a terminal can show, from its environment. */
import type { WriteStream } from 'node:tty';

import { plainMarks, unicodeMarks, type Style } from './styled-line.ts';

export interface TerminalStyle {
  readonly style: Style;
  /** Whether its cursor can be moved. */
  readonly canMove: boolean;
}

/**
 * Colours as Node finds them (NO_COLOR, TERM and others; none where the output is no terminal); characters beyond ASCII
 * where the locale has UTF-8 and the terminal is not a dumb one.
 */
export function styleOf(
  environment: Readonly<Record<string, string | undefined>>,
  output: Partial<Pick<WriteStream, 'isTTY' | 'hasColors'>>,
): TerminalStyle {
  const isDumb = (environment['TERM'] ?? '') === 'dumb';
  const locale = [environment['LC_ALL'], environment['LC_CTYPE'], environment['LANG']].find(
    (each) => (each ?? '') !== '',
  );
  const hasUnicode = !isDumb && /utf-?8/i.test(locale ?? '');
  const colour = output.isTTY === true && !isDumb && (output.hasColors?.(16, { ...environment }) ?? false);
  return { style: { colour, marks: hasUnicode ? unicodeMarks : plainMarks }, canMove: !isDumb };
}
