import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { hostName } from '../protocol/ids.ts';
import { changeFleet, knownFleet, readFleet, type FleetHost } from './fleet-file.ts';
import { stateFolder, type StateFolder } from './state-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'p4-fleet-'));
after(() => {
  rmSync(scratch, { recursive: true });
});

let folders = 0;
function newFolder(): StateFolder {
  folders += 1;
  return stateFolder({ option: `s${folders}`, environment: {}, workingFolder: scratch });
}

const host = (name: string, address: string, port = 7400): FleetHost => ({
  name: hostName(name),
  address,
  port,
  certificateName: hostName(name),
  since: '2030-01-02T03:04:05.678Z',
  why: 'the fastest that all hosts share',
  network: null,
  ssh: null,
});

test('where nothing was deployed there is no fleet', async () => {
  const folder = newFolder();
  assert.equal(await readFleet(folder), null);
  await assert.rejects(knownFleet(folder), { code: 'FLEET_FILE_MISSING', facts: { file: folder.fleetFile } });
  const both = /npm run deploy -- inventory.yaml[^]*npm run agents/;
  await assert.rejects(knownFleet(folder), both, 'it says how a fleet is made');
});

test('hosts are kept in their order, for the owner only', async () => {
  const folder = newFolder();
  const hosts = [host('bee', '2001:db8::1'), host('ant', '192.0.2.1')];
  assert.deepEqual(await changeFleet(folder, () => hosts), hosts);
  assert.deepEqual(await knownFleet(folder), { hosts, measurement: null });
  assert.equal(statSync(folder.fleetFile).mode & 0o777, 0o600);
  assert.equal(statSync(folder.root).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(folder.root), ['fleet.json']);
});

test('how ssh comes to a host is kept; where an earlier file says nothing of it, the host is dialled', async () => {
  const folder = newFolder();
  const key = { kind: 'file', path: '/home/ops/key' } as const;
  const logins = ['gate', 'ant'].map((label) => ({ label, address: `${label}.example`, port: 22, user: 'ops', key }));
  const behind = { ...host('ant', '192.0.2.1'), ssh: logins };
  await changeFleet(folder, () => [behind]);
  assert.deepEqual((await knownFleet(folder)).hosts, [behind]);

  const text = readFileSync(folder.fleetFile, 'utf8');
  writeFileSync(folder.fleetFile, text.replace('/home/ops/key', 'key'));
  await assert.rejects(knownFleet(folder), { code: 'FLEET_FILE_DAMAGED' });
  const { ssh, ...earlier } = behind;
  writeFileSync(folder.fleetFile, JSON.stringify({ format: 2, hosts: [earlier], measurement: null }));
  assert.deepEqual((await knownFleet(folder)).hosts, [{ ...earlier, ssh: null }]);
  assert.equal(ssh.length, 2);
});

test('changes that meet are both kept', async () => {
  const folder = newFolder();
  const names = ['ant', 'bee', 'cow', 'dog'];
  await Promise.all(
    names.map((name, index) => changeFleet(folder, (hosts) => [...hosts, host(name, `192.0.2.${index}`)])),
  );
  assert.deepEqual((await knownFleet(folder)).hosts.map(({ name }) => String(name)).sort(), names);
});

test('hosts that are not told apart change nothing', async () => {
  const folder = newFolder();
  await changeFleet(folder, () => [host('ant', '192.0.2.1')]);
  const refused = [
    [[host('ant', '192.0.2.1'), host('ant', '192.0.2.2')], 'the name ant twice'],
    [[host('ant', '2001:db8::1'), host('bee', '2001:DB8:0::1')], 'the address 2001:db8::1 with port 7400 twice'],
  ] as const;
  for (const [hosts, found] of refused)
    await assert.rejects(
      changeFleet(folder, () => hosts),
      { code: 'INVALID_ARGUMENT', facts: { what: 'fleet', found, expected: 'at most 256, told apart' } },
    );
  await changeFleet(folder, (hosts) => [...hosts, host('bee', '192.0.2.1', 7500)]);
  assert.equal((await knownFleet(folder)).hosts.length, 2);
});

test('a file that is not what was written is refused with its lines, and not written over', async () => {
  const folder = newFolder();
  await changeFleet(folder, () => []);
  writeFileSync(folder.fleetFile, '{\n  "format": 1,\n  "hosts": [{ "name": "ant", "port": "x" }]\n}\n');
  const damaged = {
    code: 'FLEET_FILE_DAMAGED',
    facts: {
      file: folder.fleetFile,
      why: [
        'line 3: /hosts/0/address should be a DNS name or an IP address',
        "line 3: /hosts/0/certificateName should be a host's name",
        'line 3: /hosts/0/since should be a time',
        'line 3: /hosts/0/why should be a reason',
        'line 3: /hosts/0/port should be a port, from 1 to 65535',
      ],
    },
  };
  await assert.rejects(readFleet(folder), damaged);
  await assert.rejects(
    changeFleet(folder, () => []),
    damaged,
  );
});
