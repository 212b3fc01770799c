/**
 * One text for one value: JSON as RFC 8785 (JCS) writes it, so that equal values have equal digests.
 *
 * A subset: numbers are safe integers, which every reader writes alike; a fraction is a bug here.
 */
import { assert } from './assert.ts';

export type CanonicalValue =
  null | boolean | number | string | readonly CanonicalValue[] | { readonly [key: string]: CanonicalValue };

/** No white space, keys ordered by their UTF-16 code units, strings with the escapes of JSON and no others. */
export function canonicalJson(value: CanonicalValue): string {
  if (typeof value === 'string') return canonicalString(value);
  if (typeof value === 'number') {
    assert(Number.isSafeInteger(value), 'canonical JSON has safe integers only');
    return String(value === 0 ? 0 : value);
  }
  if (typeof value === 'boolean' || value === null) return String(value);
  if (isList(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([key, member]) => `${canonicalString(key)}:${canonicalJson(member)}`).join(',')}}`;
}

// `Array.isArray` does not narrow a readonly array away.
const isList = (value: object): value is readonly CanonicalValue[] => Array.isArray(value);

function canonicalString(text: string): string {
  assert(!/\p{Surrogate}/u.test(text), 'canonical JSON has whole characters only');
  return JSON.stringify(text);
}
