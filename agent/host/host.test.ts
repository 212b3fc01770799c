import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

import { P4Error } from '../../protocol/errors.ts';
import { ringName, type RingName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { Connection } from '../journal/connection.ts';
import { openJournal } from '../journal/journal.ts';
import { loadAdmitted, sampleLoad, sessionRecords } from '../journal/sample-records.ts';
import type { JournalRecord } from '../records.ts';
import { askAgent } from './agent-call.ts';
import { HostSocket } from './host-socket.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';

const program = fileURLToPath(new URL('./main.js', import.meta.url));
const limitBytes = limits.journalLeastBytes;

interface Host {
  readonly config: string;
  readonly state: string;
  readonly runtime: string;
}

/** A host with a journal of one load of the ring `stories`. */
async function madeHost(t: TestContext): Promise<Host> {
  const folder = temporaryFolder(t);
  const [state, runtime, config] = [join(folder, 'state'), join(folder, 'run'), join(folder, 'agent.json')];
  mkdirSync(runtime, { mode: 0o700 });
  const pki = { authority: '/none', certificate: '/none', key: '/none' };
  const place = {
    ...{ host: 'h1', listen: [{ address: '127.0.0.1', port: 7400 }], stateFolder: state, slicesFolder: state },
    ...{ runtimeFolder: runtime, pki, journalLimitBytes: limitBytes, endsWithInput: false, stages: 'child-processes' },
  };
  writeFileSync(config, JSON.stringify(place));
  const journal = await openJournal({ folder: state, limitBytes });
  await journal.commit([loadAdmitted(), ...sessionRecords(1)]);
  await journal.close();
  return { config, state, runtime };
}

interface Ran {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

async function p4({ config }: Host, ...words: string[]): Promise<Ran> {
  const child = spawn(process.execPath, [program, ...words, '--config', config], { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  await once(child, 'close');
  return { status: child.exitCode, out, err };
}

const jsonOf = ({ out }: Ran): Record<string, unknown> => JSON.parse(out) as Record<string, unknown>;

async function standing({ state }: Host): Promise<JournalRecord[]> {
  const journal = await openJournal({ folder: state, limitBytes });
  const records: JournalRecord[] = [];
  for await (const record of journal.replay()) records.push(record);
  await journal.close();
  return records;
}

test('check and stats of a whole journal, for people and as JSON', async (t) => {
  const host = await madeHost(t);
  const check = await p4(host, 'journal', 'check');
  assert.equal(check.status, 0, check.err);
  assert.match(check.out, /The journal is whole\./);
  const stats = jsonOf(await p4(host, 'journal', 'stats', '--json'));
  assert.equal(stats['records'], 1 + sessionRecords(1).length);
  assert.deepEqual(stats['loads'], [
    { ring: 'stories', load: sampleLoad, stands: true, sessions: 1, requests: 1, lastRequest: 1 },
  ]);
  const repair = await p4(host, 'journal', 'repair');
  assert.equal(repair.status, 0);
  assert.match(repair.out, /nothing to repair/);
});

test('check of a damaged journal ends with 4 and names the record; repair says what is lost; then it is whole', async (t) => {
  const host = await madeHost(t);
  const connection = await Connection.open(join(host.state, 'journal.sqlite'));
  await connection.exec('UPDATE records SET token = 1 WHERE number = 9');
  await connection.close();
  const check = await p4(host, 'journal', 'check');
  assert.equal(check.status, 4);
  assert.match(check.out, /record 9: not what its checksum says/);
  assert.equal((await p4(host, 'journal', 'stats')).status, 4);
  const repair = await p4(host, 'journal', 'repair');
  assert.equal(repair.status, 0, repair.err);
  assert.match(repair.out, new RegExp(`Request ${sampleLoad} 1: its text is lost`));
  assert.equal(statSync(join(host.state, 'journal.sqlite')).mode & 0o777, 0o600);
  assert.equal((await p4(host, 'journal', 'check', '--json')).status, 0);
});

test('G7: forget asks for confirmation, then leaves a record that ends the load', async (t) => {
  const host = await madeHost(t);
  const unconfirmed = await p4(host, 'forget', 'stories');
  assert.equal(unconfirmed.status, 2);
  assert.match(unconfirmed.err, /FORGET_UNCONFIRMED/);
  assert.notDeepEqual(await standing(host), []);

  const unknown = await p4(host, 'forget', 'other', '--yes');
  assert.match(unknown.err, /RING_UNKNOWN/);
  assert.equal(unknown.status, 3);

  const forgotten = await p4(host, 'forget', 'stories', '--yes');
  assert.equal(forgotten.status, 0, forgotten.err);
  assert.match(forgotten.out, /every other host/);
  assert.deepEqual(await standing(host), []);
  assert.match((await p4(host, 'forget', 'stories', '--yes')).err, /RING_UNKNOWN/);
});

test('G7: an agent that runs does it itself, and gives its journal’s figures', async (t) => {
  const host = await madeHost(t);
  const journal = await openJournal({ folder: host.state, limitBytes });
  const asked: RingName[] = [];
  const socket = await HostSocket.listen(host.runtime, {
    forget: (ring) => {
      asked.push(ring);
      if (ring === 'stories') return Promise.resolve({ stages: 2 });
      return Promise.reject(new P4Error('RING_UNKNOWN', { ring, host: 'h1' }));
    },
    journal: () => journal.report(),
  });
  assert.equal(statSync(join(host.runtime, 'host.sock')).mode & 0o777, 0o600);
  const forgotten = await p4(host, 'forget', 'stories', '--yes', '--json');
  assert.deepEqual(jsonOf(forgotten), { forgotten: 'stories', host: 'h1', by: 'agent', stages: 2 });
  const unknown = await p4(host, 'forget', 'other', '--yes');
  assert.equal(unknown.status, 3);
  assert.match(unknown.err, /RING_UNKNOWN/);
  assert.deepEqual(asked, ['stories', 'other']);
  const stats = jsonOf(await p4(host, 'journal', 'stats', '--json'));
  assert.deepEqual([stats['isHeld'], stats['state'], stats['records']], [true, 'open', journal.stats().records]);
  for (const words of [['check'], ['repair']]) {
    const refused = await p4(host, 'journal', ...words);
    assert.equal(refused.status, 4);
    assert.match(refused.err, /JOURNAL_LOCKED[^]*systemctl stop p4-agent/);
  }
  await socket.close();
  const silent = await p4(host, 'forget', 'stories', '--yes');
  assert.match(silent.err, /AGENT_SILENT/, 'an agent holds the journal and does not listen');
  await journal.close();
});

test('the socket refuses what is no order, and outlives whoever goes away', async (t) => {
  const runtime = temporaryFolder(t);
  assert.equal(await askAgent(runtime, { kind: 'journal' }), null, 'nobody listens');
  const socket = await HostSocket.listen(runtime, {
    forget: () => Promise.resolve({ stages: 0 }),
    journal: () => Promise.reject(new P4Error('JOURNAL_WRITE_FAILED', { folder: '/f', why: 'full' })),
  });
  const said = async (text: string): Promise<string> => {
    const client = createConnection(join(runtime, 'host.sock'));
    client.end(text);
    let answer = '';
    for await (const chunk of client) answer += String(chunk);
    return answer;
  };
  assert.match(await said('{"kind":"reboot"}\n'), /"failed"/);
  assert.match(await said('no JSON\n'), /"failed"/);
  assert.match(await said('{"kind":"forget","ring":"../x"}\n'), /INVALID_ARGUMENT/);
  createConnection(join(runtime, 'host.sock')).destroy();
  await assert.rejects(askAgent(runtime, { kind: 'journal' }), { code: 'JOURNAL_WRITE_FAILED' });
  assert.deepEqual(await askAgent(runtime, { kind: 'forget', ring: ringName('a') }), { kind: 'forgotten', stages: 0 });
  await socket.close();
  assert.equal(await askAgent(runtime, { kind: 'journal' }), null);
});

test('a wrong command line, and a configuration that is not there, are said', async (t) => {
  const host = await madeHost(t);
  assert.equal((await p4(host, 'journal', 'explode')).status, 2);
  assert.equal((await p4({ ...host, config: '/nowhere/agent.json' }, 'journal', 'check')).status, 4);
});
