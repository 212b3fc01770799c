import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalJson } from './canonical-json.ts';

test('keys are ordered by UTF-16 code units, at every depth', () => {
  // The order of RFC 8785, section 3.2.3.
  const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\u{1f600}': 5, '\u0080': 6, '\u00f6': 7 };
  assert.equal(canonicalJson(value), '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\u{1f600}":5,"\ufb33":3}');
  assert.equal(canonicalJson({ b: [{ d: null, c: true }], a: {} }), '{"a":{},"b":[{"c":true,"d":null}]}');
});

test('strings have the escapes of RFC 8785', () => {
  assert.equal(canonicalJson('\u20ac$\u000f\nA\'B"\\\\"/'), '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"');
});

test('numbers are safe integers', () => {
  assert.equal(canonicalJson([0, -0, -5, Number.MAX_SAFE_INTEGER]), '[0,0,-5,9007199254740991]');
  for (const number of [0.5, NaN, Infinity, 2 ** 53]) assert.throws(() => canonicalJson(number), /safe integers only/);
});

test('half a character has no canonical form', () => {
  assert.throws(() => canonicalJson('\ud800'), /whole characters only/);
  assert.throws(() => canonicalJson({ '\udc00': 1 }), /whole characters only/);
});
