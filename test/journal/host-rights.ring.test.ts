import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { openJournal } from '../../agent/journal/journal.ts';
import { loadAdmitted } from '../../agent/journal/sample-records.ts';
import { limits } from '../../protocol/limits.ts';
import { temporaryFolder } from '../fixture/temporary-folder.ts';

const program = fileURLToPath(new URL('../../agent/host/main.js', import.meta.url));
/** Some user that is not root. */
const agentUser = 65_534;
const otherUser = 65_533;

async function p4(
  user: number,
  words: readonly string[],
): Promise<{ readonly status: number | null; readonly err: string }> {
  const stdio: ['ignore', 'ignore', 'pipe'] = ['ignore', 'ignore', 'pipe'];
  const child = spawn(process.execPath, [program, ...words], { stdio, uid: user, gid: user, cwd: '/' });
  let err = '';
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  await once(child, 'close');
  return { status: child.exitCode, err };
}

test('G7: only root and the owner of the state folder may forget; the files stay their owner’s', async (t) => {
  assert.equal(process.getuid?.(), 0, 'this test runs as root');
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  const [state, config] = [join(folder, 'state'), join(folder, 'agent.json')];
  const pki = { authority: '/none', certificate: '/none', key: '/none' };
  const place = {
    ...{ host: 'h1', listen: [{ address: '127.0.0.1', port: 7400 }], stateFolder: state, slicesFolder: state },
    ...{ runtimeFolder: folder, pki, journalLimitBytes: limits.journalLeastBytes },
    ...{ endsWithInput: false, stages: 'child-processes' },
  };
  writeFileSync(config, JSON.stringify(place));
  mkdirSync(state, { mode: 0o700 });
  const journal = await openJournal({ folder: state, limitBytes: limits.journalLeastBytes });
  await journal.commit([loadAdmitted()]);
  await journal.close();
  for (const path of [state, ...readdirSync(state).map((name) => join(state, name))])
    chownSync(path, agentUser, agentUser);

  const words = ['forget', 'stories', '--yes', '--config', config];
  const refused = await p4(otherUser, words);
  assert.equal(refused.status, 3, refused.err);
  assert.match(refused.err, /HOST_RIGHTS_MISSING/);
  assert.equal((await p4(agentUser, ['journal', 'check', '--config', config])).status, 0);
  const forgotten = await p4(0, words);
  assert.equal(forgotten.status, 0, forgotten.err);
  assert.match((await p4(0, words)).err, /RING_UNKNOWN/);
  for (const name of readdirSync(state)) assert.equal(statSync(join(state, name)).uid, agentUser, name);
});
