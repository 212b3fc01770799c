import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { hostName } from '../protocol/ids.ts';
import { changeFleet } from './fleet-file.ts';
import { LocalFleet } from './local-fleet.ts';
import { stateFolder } from './state-folder.ts';

const folder = mkdtempSync(join(tmpdir(), 'p4-local-'));
after(() => {
  rmSync(folder, { recursive: true });
});

test('agents for local use do not join a deployed fleet', async () => {
  const state = stateFolder({ option: folder, environment: {}, workingFolder: folder });
  const network = { listen: ['192.0.2.1'], operatorAddress: null, isFixed: false, addresses: [], rejected: [] };
  const ant = hostName('ant');
  const where = { address: '192.0.2.1', port: 7400, since: '2030-01-02T03:04:05.678Z', why: 'why' };
  const fleet = await changeFleet(state, () => [{ name: ant, certificateName: ant, ...where, network, ssh: null }]);
  await assert.rejects(LocalFleet.start({ state, count: 1, firstPort: null, signal: new AbortController().signal }), {
    code: 'STATE_FOLDER_DEPLOYED',
    facts: { state: folder, hosts: ['ant'] },
  });
  assert.deepEqual(await changeFleet(state, (hosts) => hosts), fleet);
  assert.deepEqual(readdirSync(folder), ['fleet.json'], 'nothing was made');
});
