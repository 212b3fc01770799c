import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';
import { limits } from '../../protocol/limits.ts';
import { stateFolder } from '../state-folder.ts';
import { FileHashes } from './file-hashes.ts';

const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');

suite('the hash of a large file', () => {
  test('is remembered until the file is another', async (context) => {
    const folder = temporaryFolder(context);
    const state = stateFolder({ option: join(folder, 'state'), environment: {}, workingFolder: folder });
    const path = join(folder, 'large');
    const age = (seconds: number): void => {
      utimesSync(path, seconds, seconds);
    };
    writeFileSync(path, Buffer.alloc(limits.rememberedHashBytes + 1, 'x'));
    age(1_700_000_000);

    const hashOnce = async (): Promise<number> => {
      const hashes = await FileHashes.open(state);
      assert.deepEqual(await hashes.hash(path), { sha256: sha256(path), bytes: statSync(path).size });
      await hashes.save();
      return hashes.hashedBytes;
    };
    assert.equal(await hashOnce(), limits.rememberedHashBytes + 1);
    assert.equal(await hashOnce(), 0);
    appendFileSync(path, 'y');
    age(1_700_000_001);
    assert.equal(await hashOnce(), limits.rememberedHashBytes + 2);
    assert.equal(await hashOnce(), 0);
    // Changed just now: it may change again within the clock's resolution.
    age(Date.now() / 1000);
    assert.notEqual(await hashOnce(), 0);
    assert.notEqual(await hashOnce(), 0);

    age(1_700_000_001);
    writeFileSync(join(state.root, 'file-hashes.json'), '{"files": [');
    assert.notEqual(await hashOnce(), 0);
    assert.equal(await hashOnce(), 0);
  });
});
