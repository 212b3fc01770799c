import assert from 'node:assert/strict';
import { test } from 'node:test';

import { generation } from '../protocol/ids.ts';
import { makeGenerationDigest, matchesGenerationDigest } from './generation-digest.ts';

test('G4: a digest matches its generation and no other, and does not contain it', async () => {
  const mine = generation('18446744073709551615');
  const digest = await makeGenerationDigest(mine);
  assert.match(digest.salt, /^[0-9a-f]{32}$/);
  assert.match(digest.hash, /^[0-9a-f]{64}$/);
  assert.equal(await matchesGenerationDigest(mine, digest), true);
  assert.equal(await matchesGenerationDigest(generation('18446744073709551614'), digest), false);
  assert.equal(await matchesGenerationDigest(mine, { ...digest, salt: '00'.repeat(16) }), false);
  assert.ok(!JSON.stringify(digest).includes(mine.toString(16)));
});

test('two digests of one generation differ by their salts', async () => {
  const one = await makeGenerationDigest(generation('42'));
  const two = await makeGenerationDigest(generation('42'));
  assert.notEqual(one.salt, two.salt);
  assert.notEqual(one.hash, two.hash);
});

test('a digest of another size is a bug, not a mismatch', async () => {
  await assert.rejects(matchesGenerationDigest(generation('42'), { salt: 'ab', hash: '' }), /salt of 16 bytes/);
});
