/** Slices on their way to hosts that have folders of their own: what is sent, what is not, and what is taken away again. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { mountedFolder } from '../fixture/temporary-folder.ts';
import { fileHash } from '../../model/file-hash.ts';
import { present } from '../../protocol/assert.ts';
import { P4Error, type ErrorCode } from '../../protocol/errors.ts';
import { hostName, sliceId, type SliceId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { SliceChunk } from '../../protocol/slice-messages.ts';
import { AgentClient } from '../../provisioner/agent-client.ts';
import { openPlan } from '../../provisioner/opened-plan.ts';
import { ensureCertificate } from '../../provisioner/pki.ts';
import { loadRing, type RingLoad } from '../../provisioner/ring-load.ts';
import { uploadSlice, type SliceUpload } from '../../provisioner/slice-upload.ts';
import { eventually } from '../fixture/eventually.ts';
import { LocalAgents, quiet, storiesModel, type RingPlan } from '../fixture/local-agents.ts';
import { Relay } from '../rpc/relay.ts';

const halves: RingPlan = {
  ring: 'halves',
  stages: [
    ['local', '0-3'],
    ['local-2', '4-7'],
  ],
};
const greedy = { prompt: 'Once upon a time', maxTokens: 16 };
const begins = ', there lived a young boy. His name was Leo.';

let scratch: string;
let folders: readonly string[];
let agents: LocalAgents;
/** The slice of layers 0-3, in the operator's folder. */
let headSlice: { readonly id: SliceId; readonly path: string; readonly bytes: number; readonly sha256: string };

before(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'p4-slices-'));
  folders = ['one', 'two'].map((name) => join(scratch, name));
  agents = await LocalAgents.start(2, folders);
});
after(async () => {
  await agents.stop();
  rmSync(scratch, { recursive: true, force: true });
});

/** Names in an agent's folder, unfinished ones too. */
const names = (index: number): readonly string[] =>
  readdirSync(present(folders[index], 'the agent has a folder')).sort();

async function load(plan: RingPlan, of = agents): Promise<RingLoad> {
  const opened = await openPlan(of.writePlan(plan));
  return loadRing({ opened, state: of.state, fleet: of.fleet }, quiet());
}

const withCode = (code: ErrorCode) => (error: unknown) => error instanceof P4Error && error.code === code;

test('each host is sent the slices of its own stages, and no others', async () => {
  const { outcome, slices, delivered } = await load(halves);
  assert.equal(outcome.kind, 'ready');
  const [head, tail] = [present(slices[0], 'a head'), present(slices[1], 'a tail')];
  assert.deepEqual(names(0), [`${head.id}.gguf`]);
  assert.deepEqual(names(1), [`${tail.id}.gguf`]);
  assert.deepEqual(
    [...delivered].sort((one, other) => one.host.localeCompare(other.host)),
    [
      { host: 'local', sentBytes: head.bytes },
      { host: 'local-2', sentBytes: tail.bytes },
    ],
  );
  const path = join(agents.state.root, 'slices', `${head.id}.gguf`);
  headSlice = { id: head.id, path, bytes: head.bytes, sha256: await fileHash(path) };
  assert.equal(await fileHash(join(present(folders[0], 'a folder'), `${head.id}.gguf`)), headSlice.sha256);
  const { text } = await (await agents.load(halves)).askAlone(greedy);
  assert.ok(text.startsWith(begins), text);
});

test('a second load sends nothing, and neither does one of another ring with the same slices', async () => {
  assert.deepEqual((await load(halves)).delivered, []);
  const twin = await load({ ...halves, ring: 'twin' });
  assert.deepEqual([twin.outcome.kind, twin.delivered], ['ready', []]);
});

test('an upload whose connection is cut goes on where it was', async () => {
  const relay = new Relay({ toPort: agents.agent('local-2').port });
  const client = await clientAt(await relay.listen(), 'operator');
  try {
    const done: number[] = [];
    relay.holdsAfterBytes = headSlice.bytes / 2;
    const upload = uploadSlice({ ...uploadOf(client), onProgress: (bytes) => done.push(bytes) });
    const part = join(present(folders[1], 'a folder'), `.${headSlice.id}.local-2.receiving`);
    await eventually(() => statSync(part, { throwIfNoEntry: false })?.size !== undefined && statSync(part).size > 0, {
      what: 'a part of the slice has come',
    });
    relay.holdsAfterBytes = Infinity;
    relay.cut();
    const total = await upload;
    const resumed = done.findIndex((bytes, index) => index > 0 && bytes <= (done[index - 1] ?? 0));
    const from = present(done[resumed], 'a second try began');
    assert.ok(from > 0, 'the second try begins behind what had come');
    assert.equal(total, present(done[resumed - 1], 'a first try') + headSlice.bytes - from);
    await assertWhole(1);
  } finally {
    client.close();
    relay.close();
  }
});

test('two senders of one slice do not hurt each other', async () => {
  await removeOn('local-2');
  const clients = await Promise.all([0, 1, 2].map(() => clientAt(agents.agent('local-2').port, 'operator')));
  const sent = await Promise.all(clients.map((client) => uploadSlice(uploadOf(client))));
  for (const client of clients) client.close();
  assert.ok(sent.includes(headSlice.bytes), 'one of them sent all of it');
  await assertWhole(1);
});

test('a file that is not what it was said to be is refused, and nothing of it stays', async () => {
  await removeOn('local-2');
  const before = names(1);
  const client = agents.fleet.client(hostName('local-2'));
  const damaged = Buffer.from(readFileSync(headSlice.path));
  damaged[damaged.length - 100] = (damaged[damaged.length - 100] ?? 0) ^ 1;
  await assert.rejects(send(client, damaged, { sha256: headSlice.sha256 }), withCode('SLICE_DAMAGED'));
  assert.deepEqual(names(1), before);
  const other = sliceId('e'.repeat(64));
  const whole = readFileSync(headSlice.path);
  await assert.rejects(send(client, whole, { id: other }), withCode('SLICE_DAMAGED'), 'it is another slice');
  await assert.rejects(send(client, Buffer.from('no GGUF at all'), { id: other }), (error) => error instanceof P4Error);
  assert.deepEqual(names(1), before);
  const damagedPath = join(scratch, 'damaged.gguf');
  writeFileSync(damagedPath, damaged);
  const upload = { ...uploadOf(client), path: damagedPath };
  await assert.rejects(uploadSlice(upload), withCode('SLICE_DAMAGED'), 'the sender gives up after a second try');
  assert.deepEqual(names(1), before);
});

test('what contradicts itself is refused before anything is written', async () => {
  const client = agents.fleet.client(hostName('local-2'));
  const before = names(1);
  const whole = readFileSync(headSlice.path);
  const begin = beginOf(whole, {});
  const wrong: readonly (readonly SliceChunk[])[] = [
    [],
    [{ part: 'data', data: whole.subarray(0, 10) }],
    [{ part: 'begin', begin: { ...begin, sliceId: '../../escape' } }],
    [{ part: 'begin', begin: { ...begin, offset: '10' } }],
  ];
  for (const chunks of wrong)
    await assert.rejects(
      client.upload(['Agent', 'ReceiveSlice'], listed(chunks), anyTime),
      withCode('INVALID_ARGUMENT'),
    );
  const tooLarge = [
    { part: 'begin', begin },
    { part: 'data', data: Buffer.alloc(limits.sliceChunkBytes + 1) },
  ] as const;
  await assert.rejects(
    client.upload(['Agent', 'ReceiveSlice'], listed(tooLarge), anyTime),
    withCode('INVALID_ARGUMENT'),
  );
  const early = [
    { part: 'begin', begin },
    { part: 'data', data: whole.subarray(0, 1000) },
  ] as const;
  await assert.rejects(client.upload(['Agent', 'ReceiveSlice'], listed(early), anyTime), withCode('INVALID_ARGUMENT'));
  const after = names(1).filter((name) => !name.endsWith('.receiving'));
  assert.deepEqual(after, before);
});

test('only an operator may list, send, cut or remove', async () => {
  const client = await clientAt(agents.agent('local').port, 'client');
  try {
    const call = (work: Promise<unknown>): Promise<void> => assert.rejects(work, withCode('ROLE_FORBIDDEN'));
    await call(client.call(['Agent', 'ListSlices'], {}, anyTime));
    await call(client.call(['Agent', 'SliceState'], { sliceIds: [headSlice.id] }, anyTime));
    await call(client.call(['Agent', 'RemoveSlices'], { sliceIds: [headSlice.id] }, anyTime));
    await call(send(client, readFileSync(headSlice.path), {}));
    const cut = { path: storiesModel, layers: { first: 0, last: 3 }, sliceId: headSlice.id };
    await call(collected(client.stream(['Agent', 'CutSlice'], cut, anyTime)));
    await call(collected(client.stream(['Agent', 'DescribeModel'], { path: storiesModel, slices: [] }, anyTime)));
  } finally {
    client.close();
  }
});

test('a model that lies on the hosts is cut there, and gives the very same slices', async () => {
  const path = join(scratch, 'stories.gguf');
  await copyFile(storiesModel, path);
  const plan: RingPlan = {
    ring: 'there',
    model: { path, on: 'hosts' },
    stages: [
      ['local', '0-2'],
      ['local-2', '3-7'],
    ],
  };
  const operators = readdirSync(join(agents.state.root, 'slices'));
  const { outcome, slices, delivered } = await load(plan);
  assert.deepEqual([outcome.kind, delivered], ['ready', []]);
  assert.deepEqual(readdirSync(join(agents.state.root, 'slices')), operators, 'nothing was cut here');
  assert.ok(names(0).includes(`${present(slices[0], 'a head').id}.gguf`));
  assert.ok(names(1).includes(`${present(slices[1], 'a tail').id}.gguf`));
  const { text } = await (await agents.load(plan)).askAlone(greedy);
  assert.ok(text.startsWith(begins), text);
  const again = await load({ ...plan, ring: 'here', model: storiesModel });
  assert.deepEqual(
    again.slices.map(({ id }) => id),
    slices.map(({ id }) => id),
  );
  assert.deepEqual(again.delivered, []);
  const absent = { ...plan, ring: 'absent', model: { path: '/no/such.gguf', on: 'hosts' } } as const;
  await assert.rejects(load(absent), withCode('MODEL_FILE_UNREADABLE'));
});

test('slices are listed with what uses them, and pruned when nothing does', async () => {
  await load({ ring: 'brief', stages: [['local', '0-7']] });
  const whole = present(
    names(0).find((name) => name.length > 64 && statSync(join(present(folders[0], ''), name)).size > 7e6),
    'the whole model is a slice',
  );
  const listed = await command(['slices', '--json']);
  assert.deepEqual(entry(listed, 'local', whole)?.['rings'], ['brief']);
  assert.equal(
    (await agents.home.run(['unload', agents.writePlan({ ring: 'brief', stages: [['local', '0-7']] })])).exit,
    0,
  );
  assert.deepEqual(entry(await command(['slices', '--json']), 'local', whole)?.['plans'], []);
  const before = names(0);
  const pruned = (await command(['slices', '--prune', '--json'])).at(-1);
  assert.equal(pruned?.['event'], 'pruned');
  assert.deepEqual(
    names(0),
    before.filter((name) => name !== whole),
  );
  const { text } = await (await agents.load(halves)).askAlone(greedy);
  assert.ok(text.startsWith(begins), 'what is loaded was left alone');
});

test('an agent keeps what its rings use, whatever it is told', async () => {
  const client = agents.fleet.client(hostName('local'));
  const reply = await client.call(['Agent', 'RemoveSlices'], { sliceIds: [headSlice.id] }, anyTime);
  assert.deepEqual(reply, { removed: [], kept: [headSlice.id] });
  assert.ok(names(0).includes(`${headSlice.id}.gguf`));
});

const mounting = { skip: process.getuid?.() === 0 ? false : 'mounting a file system needs root' };

test('a host whose disk is too small is told before anything moves', mounting, async (t) => {
  const small = mountedFolder(t, 'size=2m');
  const fleet = await LocalAgents.start(1, [small]);
  try {
    const whole = { ring: 'whole', stages: [['local', '0-7']] } as const;
    await assert.rejects(load(whole, fleet), (error) => {
      assert.ok(error instanceof P4Error && error.code === 'PLAN_DOES_NOT_FIT', String(error));
      assert.match(
        String(error.facts['shortfalls']),
        /^local: disk short by 5\.\d MB \(7\.\d MB needed, 2\.\d MB free\)$/,
      );
      return true;
    });
    assert.deepEqual(readdirSync(small), []);
    const client = fleet.fleet.client(hostName('local'));
    await assert.rejects(send(client, readFileSync(headSlice.path), {}), withCode('SLICE_NO_SPACE'));
    await eventually(() => readdirSync(small).every((name) => statSync(join(small, name)).size === 0), {
      what: 'nothing of the slice takes room',
    });
  } finally {
    await fleet.stop();
  }
});

const anyTime = { deadlineMs: 60_000 };

async function clientAt(port: number, role: 'operator' | 'client'): Promise<AgentClient> {
  const { identity } = await ensureCertificate(agents.state, { role }, new Date());
  const host = port === agents.agent('local').port ? 'local' : 'local-2';
  return AgentClient.connect({ host: hostName(host), address: '127.0.0.1', port, tls: identity });
}

const uploadOf = (client: AgentClient): SliceUpload => ({
  client,
  ...headSlice,
  signal: new AbortController().signal,
  onProgress: () => undefined,
  onSent: () => undefined,
});

const beginOf = (file: Buffer, change: { readonly id?: SliceId; readonly sha256?: string }) => ({
  sliceId: change.id ?? headSlice.id,
  bytes: String(file.length),
  sha256: change.sha256 ?? headSlice.sha256,
  offset: '0',
});

/** As a sender does it that looks at nothing first. */
async function send(client: AgentClient, file: Buffer, change: Parameters<typeof beginOf>[1]): Promise<unknown> {
  const chunks: SliceChunk[] = [{ part: 'begin', begin: beginOf(file, change) }];
  for (let at = 0; at < file.length; at += limits.sliceChunkBytes)
    chunks.push({ part: 'data', data: file.subarray(at, at + limits.sliceChunkBytes) });
  return client.upload(['Agent', 'ReceiveSlice'], listed(chunks), anyTime);
}

// eslint-disable-next-line @typescript-eslint/require-await -- a stream is asynchronous, what it is made of is not
async function* listed(chunks: readonly SliceChunk[]): AsyncGenerator<SliceChunk> {
  yield* chunks;
}

async function collected(stream: AsyncIterable<unknown>): Promise<readonly unknown[]> {
  const events: unknown[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

async function removeOn(host: string): Promise<void> {
  const request = { sliceIds: [headSlice.id] };
  rmSync(join(present(folders[1], 'a folder'), `${headSlice.id}.gguf`), { force: true });
  await agents.fleet.client(hostName(host)).call(['Agent', 'SliceState'], request, anyTime);
}

async function assertWhole(index: number): Promise<void> {
  const path = join(present(folders[index], 'a folder'), `${headSlice.id}.gguf`);
  assert.equal(await fileHash(path), headSlice.sha256);
  assert.deepEqual(
    names(index).filter((name) => name.startsWith('.')),
    [],
    'no unfinished file is left',
  );
}

type Line = Readonly<Record<string, unknown>>;

async function command(args: readonly string[]): Promise<readonly Line[]> {
  const { exit, out, err } = await agents.home.run(args);
  assert.equal(exit, 0, err);
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

function entry(lines: readonly Line[], host: string, name: string): Line | undefined {
  const line = lines.find((one) => one['event'] === 'slices' && one['host'] === host);
  return (line?.['slices'] as readonly Line[] | undefined)?.find(({ sliceId: id }) => `${String(id)}.gguf` === name);
}
