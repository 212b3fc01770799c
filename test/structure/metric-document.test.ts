import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { metricDocument, metricDocumentName } from './metric-document.ts';

/** Prettier pads cells and rules: neither says anything. */
const plain = (text: string): string => text.replaceAll(/ +\|/g, ' |').replaceAll(/\| -+ /g, '| --- ');

test('METRICS.md is what the table of metrics says: `npm run metrics:document` makes it anew', () => {
  const found = readFileSync(new URL(`../../../${metricDocumentName}`, import.meta.url), 'utf8');
  assert.equal(plain(found), plain(metricDocument()));
});
