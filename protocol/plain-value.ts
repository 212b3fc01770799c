/** Looking into values of unknown shape, as parsing JSON or YAML leaves them. */
import { P4Error } from './errors.ts';

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A mapping's own value for a key; `undefined` where there is none, or no mapping. */
export const memberOf = (value: unknown, key: string): unknown =>
  isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;

/** A list's items; none where the value is no list. */
export const itemsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The parsed form of a text, or `null` where the parser (one of `ids.ts`) refuses it. */
export function parsedOrNull<Value>(parse: (text: string) => Value, text: unknown): Value | null {
  if (typeof text !== 'string') return null;
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof P4Error) return null;
    throw error;
  }
}
