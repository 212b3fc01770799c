import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { controlSocketName, dataSocketName } from '../../protocol/stage-control.ts';
import { removeDeadStages } from './dead-stages.ts';

test('folders of dead stages go; that of one that lives, and what is somebody else’s, stay', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'p4-dead-'));
  const server = createServer((socket) => socket.destroy());
  try {
    for (const name of ['empty', 'killed', 'lives', 'other']) mkdirSync(join(folder, name));
    // What a killed process leaves: names that nobody listens behind.
    for (const name of [controlSocketName, dataSocketName]) writeFileSync(join(folder, 'killed', name), '');
    writeFileSync(join(folder, 'other', 'notes'), '');
    writeFileSync(join(folder, 'file'), '');
    await new Promise<void>((resolve) => server.listen(join(folder, 'lives', controlSocketName), resolve));
    await removeDeadStages(folder);
    assert.deepEqual(readdirSync(folder).sort(), ['file', 'lives', 'other']);
    assert.deepEqual(readdirSync(join(folder, 'lives')), [controlSocketName]);
  } finally {
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  }
});
