/** The operator's commands on a running fleet of two agents, from the first load to the unload. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { CommandHome, type CommandEnd, type RunningCommand } from './command-home.ts';

const model = join(import.meta.dirname, '../../../plans/stories.gguf');
const greedy = ['--temperature', '0', '--max-tokens', '16'];
/** How the stories model goes on, greedily: plans/MODEL.md has it too. */
const begins = ', there lived a young boy. His name was Leo.';

/** Chosen by the process, so that two runs at once do not meet. */
const firstPort = 20_000 + (process.pid % 20_000);

let home: CommandHome;
let agents: RunningCommand;
let plan: string;

before(async () => {
  home = new CommandHome();
  agents = await startAgents();
  plan = planFile('plan.yaml', 'cpu');
});
after(async () => {
  await home.remove();
});

test('a load that fails on one agent is taken from the other one again', async () => {
  const bad = planFile('bad.yaml', '{ gpu: 63 }');
  const { exit, err } = await home.run(['load', bad]);
  assert.match(err, /^ENGINE_DEVICE_ABSENT/m);
  assert.equal(exit, 2);
  assert.equal(kept().phase, 'failed');
  const { out } = await home.run(['status']);
  assert.match(out, /No ring is loaded/);
  assert.equal(home.processes().length, 3, 'the agents and their command, no stage');
});

test('a load that is interrupted is taken from every agent again', async () => {
  const failed = kept();
  const load = home.start(['load', plan]);
  // Durable before the first command leaves (G2): from here on agents hear of it.
  while (kept().generation === failed.generation) await pause(5);
  load.kill('SIGINT');
  const { exit, err } = await load.ended;
  assert.equal(exit, 130, err);
  assert.equal(kept().phase, 'failed');
  assert.match((await home.run(['status'])).out, /No ring is loaded/);
  assert.equal(home.processes().length, 3, 'no stage is left');
});

test('a load is ready on both agents, under a greater generation than the failed one', async () => {
  const failed = kept();
  const { exit, out, err } = await home.run(['load', plan]);
  assert.equal(exit, 0, err);
  assert.equal(kept().phase, 'ready');
  assert.ok(BigInt(kept().generation) > BigInt(failed.generation));
  assert.ok(out.includes(`generation ${kept().generation}, written in ${generationFile()}`));
  const status = await home.run(['status', plan]);
  assert.equal(status.exit, 0, status.out);
  assert.match(status.out, /ready on local, local-2/);
  assert.match(status.out, /1 > 2 +local-2 +\d+/);
});

test('a second load confirms the first one, with its generation', async () => {
  const first = kept();
  const stages = home.processes().toSorted();
  const { exit, out, err } = await home.run(['load', plan]);
  assert.equal(exit, 0, err);
  assert.match(out, /stands as it was loaded before/);
  assert.equal(kept().generation, first.generation);
  assert.deepEqual(home.processes().toSorted(), stages, 'no stage was started or ended');
});

test('a prompt is answered alike from the command line, standard input, and as token ids', async () => {
  const argument = await home.run(['infer', plan, 'Once upon a time', ...greedy]);
  assert.ok(argument.out.startsWith(begins), argument.out + argument.err);
  assert.ok(!argument.out.endsWith('\n'), 'in a pipe the text stands as it is');
  const piped = await home.run(['infer', plan, ...greedy], 'Once upon a time\n');
  assert.equal(piped.out, argument.out);
  const lines = await jsonLines(['infer', plan, 'Once upon a time', ...greedy, '--json']);
  assert.deepEqual(
    lines.map(({ event }) => event),
    ['submitted', ...Array<string>(16).fill('token'), 'end', 'settlement'],
  );
  assert.equal(lines.map(({ text }) => (typeof text === 'string' ? text : '')).join(''), argument.out);
  const { usage, stages } = lines.at(-1) ?? {};
  assert.deepEqual(usage, { promptTokens: 5, completionTokens: 16, totalTokens: 21, reusedTokens: 0 });
  const rows = (stages as readonly Readonly<Record<string, unknown>>[]).map((stage) => [
    stage['prefilled'],
    stage['decoded'],
  ]);
  assert.deepEqual(rows, Array(4).fill([5, 15]));
  const tokens = lines.flatMap(({ token }) => (typeof token === 'number' ? [token] : []));
  const byTokens = await jsonLines(['infer', plan, '--tokens', tokens.slice(0, 8).join(','), ...greedy, '--json']);
  assert.deepEqual(byTokens[0]?.['promptTokens'], 8);
});

test('a stop string, a grammar, a bias and a seed do what they say', async () => {
  const stopped = await home.run(['infer', plan, 'Once upon a time', '--temperature', '0', '--stop', ' boy']);
  assert.equal(stopped.out, ', there lived a young');
  const grammar = await home.run(['infer', plan, 'Once', '--grammar', 'root ::= "yes" | "no"']);
  assert.match(grammar.out, /^(yes|no)$/);
  const biased = await home.run(['infer', plan, 'Once upon a time', ...greedy, '--logit-bias', '50=-inf']);
  assert.ok(biased.exit === 0 && !biased.out.startsWith(','), biased.out);
  const seeded = (): Promise<CommandEnd> => home.run(['infer', plan, 'Once upon', '--seed', '7', '--max-tokens', '20']);
  assert.equal((await seeded()).out, (await seeded()).out);
  const wrong = await home.run(['infer', plan, 'Once', '--grammar', 'root ::= missing']);
  assert.deepEqual([wrong.exit, wrong.out], [2, '']);
});

test('Ctrl-C during an answer frees its session', async () => {
  const infer = home.start(['infer', plan, 'Once upon a time', '--ignore-end', '--json']);
  await infer.says('"token"');
  infer.kill('SIGINT');
  const { exit, err } = await infer.ended;
  assert.equal(exit, 130, err);
  await assertSessionsOpen(0);
});

test('a client that is killed frees its session, once nobody came back for it', async () => {
  const infer = home.start(['infer', plan, 'Once upon a time', '--ignore-end', '--json']);
  await infer.says('"token"');
  infer.kill('SIGKILL');
  await infer.ended;
  await assertSessionsOpen(0);
});

test('agents that start again say what they held, and the same load brings it back', async () => {
  const before = kept();
  agents.kill('SIGTERM');
  assert.equal((await agents.ended).exit, 0);
  const down = await home.run(['status']);
  assert.equal(down.exit, 3);
  assert.match(down.out, /AGENT_UNREACHABLE/);
  agents = await startAgents();
  const claimed = await home.run(['status', plan]);
  assert.equal(claimed.exit, 3);
  assert.match(claimed.out, /claimed on local/);
  const early = await home.run(['infer', plan, 'Once', ...greedy]);
  assert.equal(early.exit, 3, early.err);
  const again = await home.run(['load', plan]);
  assert.equal(again.exit, 0, again.err);
  assert.equal(kept().generation, before.generation);
  const { out } = await home.run(['infer', plan, 'Once upon a time', ...greedy]);
  assert.ok(out.startsWith(begins), out);
});

test('unload ends the stages and frees the name; the next load has a greater generation', async () => {
  const before = kept();
  const { exit, out, err } = await home.run(['unload', plan]);
  assert.equal(exit, 0, err);
  assert.match(out, /4 stages ended on local, local-2/);
  assert.equal(home.processes().length, 3, 'no stage is left');
  assert.equal((await home.run(['infer', plan, 'Once'])).exit, 3);
  const again = await home.run(['unload', plan]);
  assert.equal(again.exit, 0);
  assert.match(again.out, /nothing to take down/);
  assert.equal((await home.run(['load', plan])).exit, 0);
  assert.ok(BigInt(kept().generation) > BigInt(before.generation));
});

test('no agent has the generation on its disk', () => {
  const { generation } = kept();
  for (const name of readdirSync(join(home.state, 'agents'), { recursive: true, withFileTypes: true })) {
    if (!name.isFile()) continue;
    const bytes = readFileSync(join(name.parentPath, name.name));
    assert.ok(!bytes.includes(generation), `${name.name} has it as text`);
    const little = Buffer.alloc(8);
    little.writeBigUInt64LE(BigInt(generation));
    assert.ok(!bytes.includes(little) && !bytes.includes(little.reverse()), `${name.name} has it as a number`);
  }
});

function startAgents(): Promise<RunningCommand> {
  return home.startAgents(['--count', '2', '--port', String(firstPort)]);
}

function planFile(name: string, tailDevice: string): string {
  const path = join(home.folder, name);
  const lines = [
    ...['ring: tale', `model: ${model}`, 'context: 512', 'sessions: 2', 'deadline: 3', 'stages:'],
    ...['  - { host: local, layers: 0-1 }', '  - { host: local, layers: 2-3 }', '  - { host: local-2, layers: 4-5 }'],
    `  - { host: local-2, layers: 6-7, device: ${tailDevice} }`,
  ];
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

const generationFile = (): string => join(home.state, 'generations/tale.json');
const kept = (): { readonly generation: string; readonly phase: string } =>
  JSON.parse(readFileSync(generationFile(), 'utf8')) as { generation: string; phase: string };

async function jsonLines(args: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { exit, out, err } = await home.run(args);
  assert.equal(exit, 0, err);
  return out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

async function assertSessionsOpen(count: number): Promise<void> {
  const endsAtMs = performance.now() + 10_000;
  for (;;) {
    const { out } = await home.run(['status', plan, '--json']);
    if (out.includes(`"sessionsOpen":${count},`)) return;
    assert.ok(performance.now() < endsAtMs, out);
    await pause(50);
  }
}
