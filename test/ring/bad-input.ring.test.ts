/** What the operator's commands answer to wrong input: each case its own code and exit status, and nothing left behind. */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connect } from 'node:tls';

import { errorCodes, type ErrorCode } from '../../protocol/errors.ts';
import { freshGeneration, keepGeneration, readGeneration } from '../../provisioner/generation-file.ts';
import { openPlan } from '../../provisioner/opened-plan.ts';
import { stateFolder } from '../../provisioner/state-folder.ts';
import { CommandHome, type CommandEnd, type RunningCommand } from './command-home.ts';

const plansFolder = join(import.meta.dirname, '../../../plans');
const model = join(plansFolder, 'stories.gguf');
const modelBytes = readFileSync(model);

let home: CommandHome;
let agents: RunningCommand;
let port: number;

before(async () => {
  home = new CommandHome();
  port = await freePort();
  agents = await home.startAgents(['--port', String(port)]);
});
after(async () => {
  await home.remove();
});

describe('a wrong plan is refused with the lines of its faults', () => {
  const cases: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['a gap', ['0-1', '3-7'], /plan\.yaml:7:\d+ \/stages\/1\/layers: found 3-7, so layer 2 is on no stage/],
    ['an overlap', ['0-3', '3-7'], /plan\.yaml:7:\d+ \/stages\/1\/layers: found 3-7, of which stage 0 has some/],
    ['duplicate stages', ['0-3', '0-3', '4-7'], /plan\.yaml:7:\d+ .*the same layers as stage 0/],
    ['a layer past the end', ['0-3', '4-8'], /plan\.yaml:7:\d+ .*found 4-8, expected layers up to 7/],
    ['layers missing at the end', ['0-3', '4-6'], /plan\.yaml:7:\d+ .*layer 7 is on no stage/],
  ];
  for (const [name, layers, line] of cases) {
    test(name, async () => {
      const { err } = await refused(['load', planWith({ layers })], 'PLAN_INVALID');
      assert.match(err, line);
    });
  }

  test('an unknown host', async () => {
    const { err } = await refused(['load', planWith({ host: 'nowhere' })], 'PLAN_INVALID');
    assert.match(err, /plan\.yaml:6:\d+ \/stages\/0\/host: found the unknown host nowhere, expected one of local/);
  });

  test('every fault of a plan at once', async () => {
    const text = 'ring: UPPER\nmodel: x.gguf\ncontext: 0\nsessions: many\nstages:\n  - { host: a, layers: 5-2 }\n';
    const { err } = await refused(['load', written('plan.yaml', text)], 'PLAN_INVALID');
    for (const line of [1, 3, 4, 6]) assert.match(err, new RegExp(`plan\\.yaml:${line}:`));
  });

  test('a plan that is not there', async () => {
    await refused(['load', 'missing.yaml'], 'PLAN_UNREADABLE');
  });
});

describe('a wrong model is refused before an agent hears of it', () => {
  test('no file', async () => {
    await refusedModel('MODEL_FILE_UNREADABLE', join(home.folder, 'missing.gguf'));
  });

  test('not a GGUF', async () => {
    await refusedModel('GGUF_NOT_GGUF', written('text.gguf', 'this is no model at all'));
  });

  test('a big-endian GGUF', async () => {
    const swapped = Buffer.from(modelBytes.subarray(0, 4096));
    swapped.writeUInt32BE(3, 4);
    await refusedModel('GGUF_BIG_ENDIAN', written('big.gguf', swapped));
  });

  test('a GGUF truncated at ten places', async () => {
    for (let tenth = 0; tenth < 10; tenth += 1) {
      const path = written('short.gguf', modelBytes);
      truncateSync(path, Math.floor((modelBytes.length * tenth) / 10) + 17);
      await refusedModel('GGUF_TRUNCATED', path);
    }
  });

  test('a missing shard', async () => {
    await refusedModel('GGUF_SHARD_MISSING', written('split-00001-of-00003.gguf', splitHeader(3)));
  });
});

describe('a wrong prompt is refused and its session freed', () => {
  const plan = join(plansFolder, 'stories.yaml');

  before(async () => {
    const { exit, err } = await home.run(['load', plan]);
    assert.equal(exit, 0, err);
  });
  after(async () => {
    const { exit, out, err } = await home.run(['status', plan, '--json']);
    assert.equal(exit, 0, err);
    assert.match(out, /"sessionsOpen":0/);
    assert.equal((await home.run(['unload', plan])).exit, 0);
  });

  test('longer than the context', async () => {
    await refused(['infer', plan, 'once '.repeat(2000)], 'PROMPT_TOO_LONG');
  });
  test('a token id out of range', async () => {
    await refused(['infer', plan, '--tokens', '1,5,1024'], 'TOKEN_OUT_OF_RANGE');
  });
  test('a token id that is no number', async () => {
    await refused(['infer', plan, '--tokens', '1,x'], 'INVALID_ARGUMENT');
  });
  test('an option out of its range', async () => {
    await refused(['infer', plan, 'x', '--top-p', '2'], 'SAMPLING_INVALID');
  });
  test('an unknown option', async () => {
    await refused(['infer', plan, 'x', '--warmth', '2'], 'COMMAND_LINE_INVALID');
  });
  test('two prompts', async () => {
    await refused(['infer', plan, 'x', '--tokens', '1'], 'COMMAND_LINE_INVALID');
  });
  test('bytes that are no UTF-8', async () => {
    const { err } = await refused(['infer', plan], 'INVALID_ARGUMENT', Buffer.from([0x41, 0xff]));
    assert.match(err, /UTF-8/);
  });

  test('another plan of a ring that is loaded', async () => {
    const other = planWith({ layers: ['0-3', '4-7'] });
    await refused(['load', other], 'RING_LOADED');
    await refused(['infer', other, 'x'], 'RING_LOADED');
  });

  test('unload with another generation changes nothing', async () => {
    const path = join(home.state, 'generations/stories.json');
    const text = readFileSync(path, 'utf8');
    const generation = /"generation": "(\d+)"/.exec(text)?.[1] ?? '';
    writeFileSync(path, text.replace(`"${generation}"`, `"${BigInt(generation) + 1n}"`));
    const { err } = await refused(['unload', plan], 'GENERATION_MISMATCH');
    assert.match(err, /where (it|that) is lost, take p4 off the hosts/);
    await refused(['infer', plan, 'x'], 'GENERATION_MISMATCH');
    writeFileSync(path, text);
    assert.equal((await home.run(['infer', plan, 'Once', '--max-tokens', '2'])).exit, 0);
  });

  test('unload without a generation file changes nothing', async () => {
    const state = join(home.folder, 'other-state');
    copyState(state, { withPki: true });
    await refused(['unload', plan, '--state', state], 'GENERATION_FILE_MISSING');
    assert.equal((await home.run(['status', plan])).exit, 0);
  });

  test('a load under another generation is told that the name is taken', async () => {
    const state = join(home.folder, 'third-state');
    copyState(state, { withPki: true });
    const { err } = await refused(['load', plan, '--state', state], 'RING_TAKEN');
    assert.match(err, /where (it|that) is lost, take p4 off the hosts/);
    assert.deepEqual(generationsIn(state), [], 'nothing stands under a generation of its own');
    await refused(['unload', plan, '--state', state], 'GENERATION_FILE_MISSING');
    assert.equal((await home.run(['infer', plan, 'Once', '--max-tokens', '2'])).exit, 0);
  });

  test('a load that was begun and not told, and whose name is taken, leaves no generation behind', async () => {
    const state = join(home.folder, 'fourth-state');
    copyState(state, { withPki: true });
    const folder = stateFolder({ option: state, environment: {}, workingFolder: home.folder });
    const { plan: parsed } = await openPlan(plan);
    const begun = freshGeneration({ plan: parsed, planFile: plan, slices: [], now: new Date() }, null);
    await keepGeneration(folder, begun, null);
    await refused(['load', plan, '--state', state], 'RING_TAKEN');
    assert.deepEqual(generationsIn(state), []);
    const ended = { ...begun, phase: 'unloaded' as const };
    const again = freshGeneration({ plan: parsed, planFile: plan, slices: [], now: new Date() }, ended);
    await keepGeneration(folder, begun, null);
    await keepGeneration(folder, ended, begun);
    await keepGeneration(folder, again, ended);
    await refused(['load', plan, '--state', state], 'RING_TAKEN');
    const kept = await readGeneration(folder, parsed.ring);
    assert.deepEqual(
      [kept?.phase, kept?.generation],
      ['failed', again.generation],
      'G1: the number stays the greatest',
    );
    assert.equal((await home.run(['infer', plan, 'Once', '--max-tokens', '2'])).exit, 0);
  });
});

describe('an agent that cannot serve says so and is gone', () => {
  test('its port is in use', async () => {
    const state = join(home.folder, 'port-state');
    await refused(['agents', '--port', String(port), '--state', state], 'ADDRESS_IN_USE');
  });

  test('another agent has its journal', async () => {
    await refused(['agents', '--port', String(await freePort())], 'JOURNAL_LOCKED');
    assert.equal((await home.run(['status'])).exit, 0, 'the first one goes on');
  });

  test('its journal cannot be written', async () => {
    const state = join(home.folder, 'journal-state');
    // Not even root writes into a folder as into a file.
    for (const name of ['journal.sqlite', 'journal.db'])
      mkdirSync(join(state, 'agents/local', name), { recursive: true });
    await refused(['agents', '--port', String(await freePort()), '--state', state], 'JOURNAL_UNWRITABLE');
  });

  test('too many agents, or a port that is none', async () => {
    await refused(['agents', '--count', '99'], 'INVALID_ARGUMENT');
    await refused(['agents', '--port', '70000'], 'INVALID_ARGUMENT');
  });
});

test('with --json a failure is one JSON line, whatever the command', async () => {
  const commands = [
    ['load', 'missing.yaml'],
    ['unload', 'missing.yaml'],
    ['infer', 'missing.yaml', 'x'],
    ['status', '--what'],
  ];
  for (const args of commands) {
    const { exit, out, err } = await home.run([...args, '--json']);
    const { event, code, exit: told } = JSON.parse(err) as Readonly<Record<string, unknown>>;
    assert.deepEqual([event, told, exit, out], ['error', 2, 2, '']);
    assert.equal(code, args[0] === 'status' ? 'COMMAND_LINE_INVALID' : 'PLAN_UNREADABLE');
  }
});

describe('a stranger is not served', () => {
  test('a client without a certificate', async () => {
    const authority = readFileSync(join(home.state, 'pki/authority.crt'));
    const heard = await new Promise<string>((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, ca: authority, servername: 'local', ALPNProtocols: ['h2'] });
      let bytes = 0;
      socket.on('data', (data: Buffer) => (bytes += data.length));
      socket.on('error', (error: Error) => {
        resolve(error.message);
      });
      socket.on('close', () => {
        resolve(`closed after ${bytes} bytes`);
      });
    });
    assert.match(heard, /certificate required|closed after 0 bytes|ECONNRESET/i);
  });

  test('an operator of another fleet', async () => {
    const state = join(home.folder, 'foreign-state');
    copyState(state, { withPki: false });
    const { exit, out, err } = await home.run(['status', '--state', state]);
    assert.equal(exit, 3, err);
    assert.match(out, /CERTIFICATE_REFUSED/);
    await refused(['load', join(plansFolder, 'stories.yaml'), '--state', state], 'CERTIFICATE_REFUSED');
  });
});

test('agents that were asked to end leave no process and no socket', async () => {
  agents.kill('SIGINT');
  const { exit, err } = await agents.ended;
  assert.equal(exit, 0, err);
  assert.deepEqual(await home.processesLeft(), []);
  assert.deepEqual(home.temporaryFiles(), []);
  await refused(['status'], null);
});

/**
 * Runs a command that must fail with this code; that leaves no process and no half-cut slice.
 * @param code `null` for a status that is printed, not thrown
 */
async function refused(
  args: readonly string[],
  code: ErrorCode | null,
  input: string | Buffer = '',
): Promise<CommandEnd> {
  const running = home.processes().length;
  const end = await home.run(args, input);
  if (code === null) {
    assert.equal(end.exit, 3, end.err);
    return end;
  }
  const rule = errorCodes[code];
  assert.equal(end.exit, rule.exit, `${end.out}${end.err}`);
  assert.match(end.err, new RegExp(`^${code}: `, 'm'));
  assert.ok(end.err.includes(rule.remedy), 'it says what to do');
  assert.ok(!/^ {4}at /m.test(end.err), 'no stack');
  assert.equal(home.processes().length, running, 'no process is left');
  assert.deepEqual(halfCutSlices(), []);
  return end;
}

const refusedModel = (code: ErrorCode, path: string): Promise<CommandEnd> =>
  refused(['load', planWith({ modelPath: path, ring: 'other' })], code);

const halfCutSlices = (): readonly string[] =>
  readdirSync(home.folder, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.cutting'));

interface PlanWords {
  readonly layers?: readonly string[];
  readonly host?: string;
  readonly modelPath?: string;
  readonly ring?: string;
}

/** A plan file; its first stage stands on line 6. */
function planWith({ layers = ['0-3', '4-7'], host = 'local', modelPath = model, ring = 'stories' }: PlanWords): string {
  const head = [`ring: ${ring}`, `model: ${modelPath}`, 'context: 1024', 'sessions: 4', 'stages:'];
  const stages = layers.map((range) => `  - { host: ${host}, layers: ${range} }`);
  return written('plan.yaml', [...head, ...stages, ''].join('\n'));
}

function written(name: string, content: string | Buffer): string {
  const path = join(home.folder, name);
  writeFileSync(path, content);
  return path;
}

/** The generation files of a state folder. */
const generationsIn = (state: string): readonly string[] =>
  existsSync(join(state, 'generations')) ? readdirSync(join(state, 'generations')) : [];

/** The fleet file of the running agents in another state folder, with or without the keys it takes to reach them. */
function copyState(folder: string, { withPki }: { readonly withPki: boolean }): void {
  mkdirSync(join(folder, 'pki'), { recursive: true });
  copyFileSync(join(home.state, 'fleet.json'), join(folder, 'fleet.json'));
  if (!withPki) return;
  for (const name of readdirSync(join(home.state, 'pki'))) {
    copyFileSync(join(home.state, 'pki', name), join(folder, 'pki', name));
  }
}

/** The first shard of a split model: a GGUF header of version 3 with nothing but the keys that say so. */
function splitHeader(shards: number): Buffer {
  const u32 = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return bytes;
  };
  const u64 = (value: number): Buffer => Buffer.concat([u32(value), u32(0)]);
  const text = (value: string): Buffer => Buffer.concat([u64(value.length), Buffer.from(value)]);
  const u16Value = (key: string, value: number): Buffer =>
    Buffer.concat([text(key), u32(2), Buffer.from([value & 0xff, value >> 8])]);
  const i32Value = (key: string, value: number): Buffer => Buffer.concat([text(key), u32(5), u32(value)]);
  return Buffer.concat([
    ...[Buffer.from('GGUF'), u32(3), u64(0), u64(3)],
    ...[u16Value('split.no', 0), u16Value('split.count', shards), i32Value('split.tensors.count', 75)],
  ]);
}

/** A port that was free a moment ago, with the next one for the metrics. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: free } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return free;
}
