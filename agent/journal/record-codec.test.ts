import assert from 'node:assert/strict';
import { test } from 'node:test';

import { admittedLoad, checksum, decodeRecord, encodeRecord, readRow, rowText, type Row } from './record-codec.ts';
import { oneOfEach, requestAdmitted, sampleLoad, tokenEmitted } from './sample-records.ts';

const place = { number: 5, load: 1, at: 1_700_000_000 };
const written = (row: Row): unknown => JSON.parse(rowText(row));

/** The row if its checksum is right. */
function checkedRow(cells: unknown): Row | null {
  const { row, crc32c } = readRow(cells);
  return checksum(row) === crc32c ? row : null;
}

test('a record of each kind comes back as it was, through its row and checksum', () => {
  for (const record of [...oneOfEach(), requestAdmitted(2, { adopted: [0, 3, 12] })]) {
    const row = checkedRow(written(encodeRecord(record, place)));
    assert.ok(row !== null, record.kind);
    assert.deepEqual(decodeRecord(row, sampleLoad), record);
  }
});

test('only a load admission gives a load id', () => {
  const loads = oneOfEach().map((record) => admittedLoad(encodeRecord(record, place)));
  assert.deepEqual(loads, [sampleLoad, ...Array<null>(oneOfEach().length - 1).fill(null)]);
});

test('an emitted token has neither time nor body, whether it was drawn alone or not', () => {
  for (const index of [2, 3]) {
    const { at, body } = encodeRecord(tokenEmitted(index), place);
    assert.deepEqual({ at, body }, { at: null, body: null });
  }
});

test('the checksum sees a change in any column', () => {
  for (const record of oneOfEach()) {
    const cells = written(encodeRecord(record, place));
    assert.ok(Array.isArray(cells));
    for (const [column, cell] of cells.entries()) {
      const changed: unknown[] = cells.with(column, typeof cell === 'string' ? `${cell} ` : Number(cell) + 1);
      assert.equal(checkedRow(changed), null, `column ${column} of ${record.kind}`);
    }
  }
});

test('a kind that a newer p4 wrote is told from a damaged row', () => {
  const row = checkedRow(written({ ...encodeRecord(tokenEmitted(0), place), kind: 200 }));
  assert.ok(row !== null);
  assert.equal(decodeRecord(row, sampleLoad), null);
});
