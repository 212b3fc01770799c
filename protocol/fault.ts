/**
 * What is wrong with a document an operator wrote: where it stands, what is there, and what should be.
 *
 * A wrong document is answered with every fault at once, in the order of its lines.
 */
import { P4Error } from './errors.ts';
import { isRecord } from './plain-value.ts';

/** Where something stands in a file. */
export interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** In UTF-16 code units, from 1. */
  readonly column: number;
}

export interface Fault extends Place {
  /** JSON pointer of the value in question, `''` for the document itself. */
  readonly path: string;
  /** What is there, in words that follow "found". */
  readonly found: string;
  /** What should be there, in words that follow "expected". */
  readonly expected: string;
}

const longestShown = 60;

/** `file:line:column path: found X, expected Y`. */
export const faultText = (fault: Fault): string =>
  `${fault.file}:${fault.line}:${fault.column}${fault.path === '' ? '' : ` ${fault.path}`}: found ${fault.found}, expected ${fault.expected}`;

/** One line per fault. */
export const faultsText = (faults: readonly Fault[]): string => faults.map(faultText).join('\n');

/** The faults by line and column, each one once. */
export function orderedFaults(faults: readonly Fault[]): readonly Fault[] {
  const once = new Map(faults.map((fault) => [faultText(fault), fault]));
  return [...once.values()].sort((one, other) => one.line - other.line || one.column - other.column);
}

/** The error to throw where faults end a command; its facts hold every fault's line. */
export const faultsError = (
  code: 'PLAN_INVALID' | 'INVENTORY_INVALID' | 'CONFIG_INVALID',
  faults: readonly Fault[],
): P4Error => new P4Error(code, { faults: faults.map(faultText) });

/** A value as a fault shows it: short, and told apart from what it might be mistaken for. */
export function shownValue(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  if (isRecord(value)) {
    const keys = Object.keys(value);
    return keys.length === 0 ? 'an empty mapping' : `a mapping of ${shortened(keys.join(', '))}`;
  }
  return typeof value === 'number' ? String(value) : shortened(JSON.stringify(value));
}

/** A text cut to what fits a line. */
export const shortened = (text: string): string =>
  text.length <= longestShown ? text : `${text.slice(0, longestShown)}…`;
