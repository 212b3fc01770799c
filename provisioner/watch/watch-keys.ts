/** What keys do to a live picture. Pure. */
import { limits } from '../../protocol/limits.ts';

export interface LiveState {
  readonly intervalSeconds: number;
  readonly isPaused: boolean;
  readonly hasHelp: boolean;
  readonly scroll: number;
  readonly isOver: boolean;
}

/** What + and - go through, in seconds. */
const intervals: readonly number[] = [1, 2, 5, 10, 30, 60, 300, 900, limits.watchIntervalSeconds];

/** @param keys as a terminal sends them, one or more at once */
export function afterKeys(before: LiveState, keys: string, scrollMost: number): LiveState {
  let state = before;
  for (const key of keys.replaceAll('\x1b[A', 'k').replaceAll('\x1b[B', 'j')) state = afterKey(state, key, scrollMost);
  return state;
}

function afterKey(state: LiveState, key: string, scrollMost: number): LiveState {
  const { intervalSeconds, scroll } = state;
  switch (key) {
    case 'q':
    case 'Q':
    case '\u0003': // Ctrl-C, which a raw terminal makes no signal of
    case '\u0004': // Ctrl-D
      return { ...state, isOver: true };
    case 'p':
    case ' ':
      return { ...state, isPaused: !state.isPaused };
    case '+':
    case '=':
      return { ...state, intervalSeconds: intervals.find((each) => each > intervalSeconds) ?? intervalSeconds };
    case '-':
      return { ...state, intervalSeconds: intervals.findLast((each) => each < intervalSeconds) ?? intervalSeconds };
    case 'j':
      return { ...state, scroll: Math.min(scrollMost, scroll + 1) };
    case 'k':
      return { ...state, scroll: Math.max(0, scroll - 1) };
    case '?':
    case 'h':
      return { ...state, hasHelp: !state.hasHelp };
    default:
      return state;
  }
}
