import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { vocabularyFrom } from '../../agent/head/vocabulary.ts';
import { present } from '../../protocol/assert.ts';
import { P4Error, type ErrorCode } from '../../protocol/errors.ts';
import { decodeFrame, encodeFrame } from '../../protocol/hop-frame.ts';
import { nodeIndex, ringName, sliceId } from '../../protocol/ids.ts';
import { memberOf } from '../../protocol/plain-value.ts';
import { controlSocketName, dataSocketName } from '../../protocol/stage-control.ts';
import { greedy, headFrame, itemsOf, TestSession, testGeneration, tokensOf } from '../../stage/core-fixture.ts';
import { argmax, decodeRows, sequenceRows, withEngine } from '../../stage/engine-fixture.ts';
import { eventually } from '../fixture/eventually.ts';
import { FleetStage, startFleet, type StageFleet } from './stage-fleet.ts';

const prompt = [0, 379, 395, 264, 364, 12];

async function withFleet(
  cuts: readonly number[],
  use: (fleet: StageFleet, stages: readonly [FleetStage, FleetStage]) => Promise<void>,
): Promise<void> {
  const fleet = await startFleet(cuts);
  try {
    const [head, tail = head] = fleet.stages;
    await use(fleet, [present(head, 'a head'), present(tail, 'a tail')]);
  } finally {
    await fleet.stop();
  }
  assert.equal(existsSync(fleet.folder), false);
}

const withCode = (code: ErrorCode) => (error: unknown) => error instanceof P4Error && error.code === code;

const isAlive = (pid: number): boolean => existsSync(`/proc/${String(pid)}`);

test('two stages, each a process of its own, say what the uncut model says', async () => {
  await withFleet([4], async (fleet, [head, tail]) => {
    assert.equal(new Set([process.pid, head.handle.pid, tail.handle.pid]).size, 3);
    const session = new TestSession(0);
    let out = await fleet.round(headFrame([session.open, session.begin(greedy), session.prefill(6, true)], prompt));
    const found: number[] = [];
    while (found.length < 40) {
      found.push(present(tokensOf([out])[0], 'the tail draws').token);
      out = await fleet.round(headFrame([session.decode(found.length)], found.slice(-1)));
    }
    const expected: number[] = [];
    withEngine({}, (whole) => {
      let rows = sequenceRows(prompt);
      while (expected.length < 40) {
        expected.push(argmax(decodeRows(whole, rows).at(-1) ?? new Float32Array()));
        rows = sequenceRows(expected.slice(-1), 0, whole.nextPosition(0));
      }
    });
    assert.deepEqual(found, expected);

    const end = itemsOf([await fleet.round(headFrame([session.end, session.close]))])[0];
    assert.deepEqual(
      end?.kind === 'end' && end.receipts.map(({ node, prefilled, decoded }) => [node, prefilled, decoded]),
      [0, 1].map((node) => [node, 6, 40]),
    );
    for (const stage of [head, tail]) {
      const report = await stage.connection.report();
      assert.deepEqual([report.prefilledRows, report.decodedRows, report.kvCellsUsed], [6, 40, 0]);
      assert.ok(
        report.residentBytes > 1e6 && report.computeSeconds > 0 && report.cpuSeconds > report.computeSeconds / 2,
      );
    }
  });
});

test('frames of the head that are sent together are decoded one by one', async () => {
  await withFleet([4], async (_, [head]) => {
    const sessions = [0, 1, 2, 3].map((number) => new TestSession(number));
    for (const session of sessions) {
      const frame = headFrame([session.open, session.begin(), session.prefill(6, false)], prompt);
      head.connection.sendFrame(encodeFrame(frame));
    }
    let completes = 0;
    while (completes < 4) completes += decodeFrame(await head.nextFrame()).completes;
    const { decodes, prefilledRows } = await head.connection.report();
    assert.equal(prefilledRows, 24);
    assert.equal(decodes, 4);
  });
});

test('the head tokenizes and tells its vocabulary, also while it decodes; a tail that has none says so', async () => {
  await withFleet([2, 5], async (fleet, [head, middle]) => {
    const session = new TestSession(0);
    const chunk = Array<number>(63).fill(379);
    head.connection.sendFrame(
      encodeFrame(headFrame([session.open, session.begin(), session.prefill(63, false)], chunk)),
    );
    const text = 'Once upon a time';
    const tokens = await head.connection.tokenize(text, { addSpecial: false, parseSpecial: false });
    const vocabulary = vocabularyFrom(await head.connection.vocabulary());
    const bytes = Buffer.concat(tokens.map((token) => vocabulary.piece(token)));
    assert.equal(bytes.toString().trim(), text);
    await head.nextFrame();

    const options = { addSpecial: false, parseSpecial: false };
    await assert.rejects(middle.connection.tokenize(text, options), withCode('TOKENIZER_ABSENT'));
    await assert.rejects(head.connection.tokenize('tree '.repeat(400), options), withCode('PROMPT_TOO_LONG'));
    assert.equal(fleet.stages.flatMap(({ losses }) => losses).length, 0);
  });
});

test('a killed stage is lost to its agent, and leaves no socket behind', async () => {
  await withFleet([4], async (_, [head, tail]) => {
    const { pid, folder } = tail.handle;
    process.kill(pid, 'SIGKILL');
    assert.equal((await tail.awaitLoss()).code, 'STAGE_LOST');
    const exit = await tail.handle.exited;
    assert.deepEqual([exit.status, exit.signal], [null, 'SIGKILL']);
    assert.equal(existsSync(folder), false);
    assert.equal(isAlive(pid), false);
    assert.equal(tail.losses.length, 1);
    assert.equal(head.losses.length, 0);
    await head.connection.report();
  });
});

test('a wrong hello is refused with its reason, and nothing changes', async () => {
  await withFleet([], async (_, [stage]) => {
    const session = new TestSession(0);
    await stage.answer(encodeFrame(headFrame([session.open, session.begin(), session.prefill(6, false)], prompt)));
    const other = await stage.connect();
    const refused: readonly (readonly [ErrorCode, object])[] = [
      ['GENERATION_MISMATCH', { generation: '17592186044418' }],
      ['STAGE_OF_ANOTHER_NODE', { ring: ringName('other') }],
      ['STAGE_OF_ANOTHER_NODE', { node: nodeIndex(1) }],
    ];
    for (const [code, change] of refused) await assert.rejects(stage.attach(change), withCode(code));
    const { facts, ...load } = present(other.welcome.holds, 'it holds its load');
    assert.deepEqual(load, { ring: 'test', node: 0, generation: testGeneration.toString() });
    assert.equal(facts.hasTokenizer, true);
    assert.equal((await other.report()).kvCellsUsed, 6);
    assert.equal(stage.losses.length, 0);
    other.close();
  });
});

test('an agent that comes back takes the place of the former one and finds the stage empty', async () => {
  await withFleet([], async (_, [stage]) => {
    const former = stage.connection;
    const session = new TestSession(0);
    await stage.answer(encodeFrame(headFrame([session.open, session.begin(), session.prefill(6, false)], prompt)));
    const { incarnation } = former.welcome;
    const next = await stage.connect();
    assert.equal(next.welcome.incarnation, incarnation);
    await assert.rejects(
      next.load(stage.order, () => undefined),
      withCode('STAGE_HOLDS_LOAD'),
    );
    await stage.attach();
    assert.equal((await stage.awaitLoss()).code, 'STAGE_LOST');
    const again = new TestSession(0);
    const answer = await next.report();
    assert.equal(answer.kvCellsUsed, 0);
    stage.losses.length = 0;
    const out = decodeFrame(
      await stage.answer(encodeFrame(headFrame([again.open, again.begin(), again.prefill(6, true)], prompt))),
    );
    assert.equal(tokensOf([out]).length, 1);
  });
});

test('a frame of another generation closes its connection and changes nothing; one that contradicts ends the stage', async () => {
  await withFleet([], async (_, [stage]) => {
    const wrong = headFrame([new TestSession(1).open], [], { generation: (testGeneration + 1n) as never });
    stage.connection.sendFrame(encodeFrame(wrong));
    assert.equal((await stage.awaitLoss()).code, 'STAGE_LOST');
    const isSaid = (): boolean =>
      stage.lines.some((line) => line.kind === 'record' && line.record['code'] === 'GENERATION_MISMATCH');
    await eventually(isSaid, { what: 'the stage says why' });
    assert.equal(JSON.stringify(stage.lines).includes(testGeneration.toString()), false);
    assert.ok(isAlive(stage.handle.pid));

    stage.losses.length = 0;
    await stage.connect();
    await stage.attach();
    stage.connection.sendFrame(encodeFrame(headFrame([new TestSession(1).close])));
    assert.equal((await stage.awaitLoss()).code, 'STAGE_PROTOCOL');
    assert.equal((await stage.handle.exited).status, 70);
    assert.equal(existsSync(stage.handle.folder), false);
  });
});

test('a slice that is not the one named never reaches the engine, and the stage can load another', async () => {
  await withFleet([4], async (fleet, [head, tail]) => {
    const spare = await FleetStage.start(fleet.folder, { ...head.order, node: nodeIndex(7) });
    try {
      const load = (change: object) => spare.connection.load({ ...head.order, ...change }, () => undefined);
      await assert.rejects(load({ sliceId: sliceId('0'.repeat(64)) }), withCode('SLICE_MISMATCH'));
      await assert.rejects(load({ slicePath: tail.order.slicePath }), withCode('SLICE_MISMATCH'));
      await assert.rejects(load({ layers: { first: 0, last: 2 } }), withCode('SLICE_MISMATCH'));
      await assert.rejects(load({ slicePath: '/dev/null' }), P4Error);
      await assert.rejects(load({ stages: 1 }), withCode('INVALID_ARGUMENT'));
      await assert.rejects(spare.connection.report(), withCode('STAGE_EMPTY'));
      const facts = await load({});
      assert.equal(facts.hasTokenizer, true);
      assert.equal(facts.weightBytes, statSync(head.order.slicePath).size);
    } finally {
      await spare.stop();
    }
  });
});

test('a stage ends when its agent is gone, when it is told to, and on SIGTERM; not on Ctrl-C', async () => {
  const fleet = await startFleet([2, 5]);
  try {
    const [first, second, third] = fleet.stages;
    assert.ok(first && second && third);
    for (const { handle } of fleet.stages) process.kill(handle.pid, 'SIGINT');
    await Promise.all(fleet.stages.map(({ connection }) => connection.report()));

    const orphan = orphanedStage(fleet);
    await untilGone(orphan.pid);
    assert.deepEqual(readdirSync(orphan.folder), []);

    first.connection.stop();
    assert.deepEqual(await exitOf(first), [0, null]);
    process.kill(second.handle.pid, 'SIGTERM');
    assert.deepEqual(await exitOf(second), [0, null]);
    const exit = await third.handle.stop();
    assert.deepEqual([exit.status, exit.signal], [0, null]);
    assert.deepEqual(
      readdirSync(fleet.folder).filter((name) => name.startsWith('test.')),
      [],
    );
  } finally {
    await fleet.stop();
  }
});

async function exitOf(stage: FleetStage): Promise<[number | null, string | null]> {
  const { status, signal } = await stage.handle.exited;
  return [status, signal];
}

/** A stage whose launcher is killed at once: what is left is the stage alone. */
function orphanedStage(fleet: StageFleet): { readonly pid: number; readonly folder: string } {
  const folder = join(fleet.folder, 'orphan');
  const launcherUrl = new URL('../../agent/stages/child-launcher.js', import.meta.url).href;
  const script = `
    const { ChildLauncher } = await import(${JSON.stringify(launcherUrl)});
    const spec = { ring: 'test', node: 9, folder: ${JSON.stringify(folder)}, log: () => undefined };
    const stage = await new ChildLauncher().start(spec);
    const { existsSync } = await import('node:fs');
    while (!existsSync(${JSON.stringify(join(folder, controlSocketName))})) await new Promise((go) => setTimeout(go, 10));
    process.stdout.write(String(stage.pid), () => process.kill(process.pid, 'SIGKILL'));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  const pid = Number(stdout);
  assert.ok(pid > 1, 'the stage had started');
  return { pid, folder };
}

const untilGone = (pid: number): Promise<void> => untilTrue(() => !isAlive(pid));

async function untilTrue(isTrue: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + 10_000;
  while (!isTrue()) {
    assert.ok(performance.now() < endsAtMs, 'it comes true within 10 s');
    await delay(10);
  }
}

test('an idle stage takes less than 1 % of a CPU', async () => {
  await withFleet([4], async (fleet) => {
    const session = new TestSession(0);
    await fleet.round(headFrame([session.open, session.begin(), session.prefill(6, true)], prompt));
    const cpuSeconds = (): number[] => fleet.stages.map(({ handle }) => cpuSecondsOf(handle.pid));
    const before = cpuSeconds();
    const seconds = 3;
    await delay(seconds * 1000);
    cpuSeconds().forEach((now, index) => {
      assert.ok(now - (before[index] ?? 0) <= 0.01 * seconds);
    });
  });
});

/** User and system time, in seconds; the kernel counts in hundredths. */
function cpuSecondsOf(pid: number): number {
  const fields =
    readFileSync(`/proc/${String(pid)}/stat`, 'utf8')
      .split(') ')[1]
      ?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

test('a stage takes over the sockets of a dead one, but not of one that lives, and no folder that is open to others', async () => {
  await withFleet([], async (fleet, [stage]) => {
    await assert.rejects(FleetStage.start(fleet.folder, stage.order), withCode('STAGE_RUNTIME_FOLDER'));
    const { folder } = stage.handle;
    assert.deepEqual(await exitOfMain(folder), [4, 'another stage lives in it']);
    await stage.connection.report();
    assert.equal(await isServed(join(folder, dataSocketName)), true);

    const left = join(fleet.folder, 'left');
    mkdirSync(left, { mode: 0o700 });
    const dead = spawn(process.execPath, [stageMain, '--runtime', left], { stdio: 'ignore' });
    await untilTrue(() => existsSync(join(left, controlSocketName)));
    dead.kill('SIGKILL');
    await once(dead, 'exit');
    assert.deepEqual(readdirSync(left), [controlSocketName]);
    const next = await FleetStage.start(fleet.folder, { ...stage.order, ring: ringName('left') }, left);
    assert.equal((await next.load()).hasTokenizer, true);
    await next.stop();

    mkdirSync(left, { mode: 0o755 });
    assert.deepEqual(await exitOfMain(left), [4, 'other users may enter it']);
  });
});

const stageMain = fileURLToPath(new URL('../../stage/main.js', import.meta.url));

/** How a stage ends that cannot start. */
async function exitOfMain(folder: string): Promise<[number | null, unknown]> {
  const child = spawn(process.execPath, [stageMain, '--runtime', folder], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  await once(child, 'close');
  const line: unknown = JSON.parse(said);
  return [child.exitCode, memberOf(line, 'reason')];
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });
}
