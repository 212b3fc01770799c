import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { SliceBegin } from '../../protocol/slice-messages.ts';
import { parseUpload } from './upload-order.ts';

const begin: SliceBegin = { sliceId: 'a'.repeat(64), bytes: '4096', sha256: 'b'.repeat(64), offset: '96' };

test('an upload says which slice it is, how large, and from where on', () => {
  assert.deepEqual(parseUpload({ part: 'begin', begin }), {
    ...{ id: 'a'.repeat(64), bytes: 4096, sha256: 'b'.repeat(64), offset: 96 },
  });
});

test('nothing that could become another path or size is taken', () => {
  const wrong: readonly Partial<SliceBegin>[] = [
    { sliceId: '../../etc/passwd' },
    { sliceId: 'A'.repeat(64) },
    { sliceId: `${'a'.repeat(63)}\0` },
    { sliceId: '' },
    { sha256: 'b' },
    { bytes: '0', offset: '0' },
    { bytes: '-1' },
    { bytes: '18446744073709551615' },
    { bytes: '9007199254740993' },
    { bytes: '1e3' },
    { offset: '4097' },
    { offset: 'x' },
  ];
  for (const change of wrong) {
    const refused = () => parseUpload({ part: 'begin', begin: { ...begin, ...change } });
    assert.throws(refused, { code: 'INVALID_ARGUMENT' }, JSON.stringify(change));
  }
  assert.throws(() => parseUpload({ part: 'data', data: Buffer.from('x') }), { code: 'INVALID_ARGUMENT' });
  assert.throws(() => parseUpload({}), { code: 'INVALID_ARGUMENT' });
});
