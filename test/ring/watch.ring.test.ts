/**
 * `watch` on a real ring in a real terminal: its picture is the stored one but for figures, keys and sizes do what they say,
 * an agent that hangs is told of while the view goes on, and the terminal is given back however it ends.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import process from 'node:process';

import { eventually } from '../fixture/eventually.ts';
import type { LoadedRing } from '../fixture/loaded-ring.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import { Tmux } from '../fixture/tmux.ts';

const stored = readFileSync(join(import.meta.dirname, '../../../test/ring/watch-picture.txt'), 'utf8').trimEnd();
const main = join(import.meta.dirname, '../../provisioner/main.js');
/** On a busy machine. */
const withinMs = 60_000;

let agents: LocalAgents;
let ring: LoadedRing;
let plan: string;
let terminal: Tmux;
const enough = new AbortController();
let work: Promise<void>;

before(async () => {
  agents = await LocalAgents.start(2);
  const stages = [
    ['local', '0-1'],
    ['local', '2-3'],
    ['local-2', '4-5'],
    ['local-2', '6-7'],
  ] as const;
  ring = await agents.load({ ring: 'tale', stages, context: 512 });
  plan = ring.plan.path;
  work = keepBusy();
  const { home } = agents;
  const environment = { ...process.env, TMPDIR: home.temporary, P4_STATE: home.state };
  terminal = Tmux.start({ folder: home.folder, columns: 80, rows: 40, environment });
});
after(async () => {
  terminal.stop();
  enough.abort();
  await work;
  await agents.stop();
});

/** One story after the other, so that there is something to see. */
async function keepBusy(): Promise<void> {
  while (!enough.signal.aborted) await ring.askAlone({ prompt: 'Once upon a time', maxTokens: 400, ignoreEnd: true });
}

/** The picture without its figures: the layout is exact, and each figure stands where it did. */
function masked(lines: readonly string[]): string {
  return lines.map(maskedLine).join('\n');
}

function maskedLine(line: string): string {
  const plain = line
    .replace(/\d\d:\d\d:\d\d/, 'hh:mm:ss')
    .replace(/loaded .* ago/, 'loaded # ago')
    .replace(/[█░]{20}/, '='.repeat(20))
    .replace(/^tokens\/s +[\d.]+ {2}[▁▂▃▄▅▆▇█ ]+ prompt [\d.]+, most [\d.]+/, 'tokens/s       # ~ prompt #, most #')
    .replace(/^decay +[\d.]+ of (the first hour of this load|when this watch began)$/, 'decay      # of #')
    .replace(/load: \S+ running, \S+ of the context, \S+ prompt/, 'load: # running, # of the context, # prompt');
  // A column of figures ends where it ends.
  const columns = plain.replaceAll(/ {2,}(?:[\d.]+ m?s|\d+%)/g, (figure) => '#'.padStart(figure.length));
  if (/^[╭│] ?[─ ]/.test(columns) && !columns.includes('hop')) return columns;
  return columns
    .replaceAll(/(?<![\w.-])[\d.]+(?!\w)/g, '#')
    .replaceAll(/# m?s\b/g, '# s')
    .replaceAll(/\b[kMG]B\b/g, 'B');
}

/** Waits until the terminal shows this. */
async function shows(isThere: (lines: readonly string[]) => boolean, what: string): Promise<void> {
  try {
    await eventually(() => isThere(terminal.picture()), { what, withinMs });
  } catch (error) {
    throw new Error(`${what}:\n${terminal.picture().join('\n')}`, { cause: error });
  }
}

const type = (line: string): void => {
  terminal.press(line, 'Enter');
};

function startWatch(...options: readonly string[]): void {
  type(`clear; ${process.execPath} ${main} watch ${plan} ${options.join(' ')}; echo "exit $?"`);
}

/** The shell has its terminal back as it was. */
async function assertRestored(exit: number): Promise<void> {
  await shows((lines) => lines.includes(`exit ${exit}`), `the shell has the exit status ${exit}`);
  assert.deepEqual(terminal.modes(), { hasScreen: false, hasCursor: true });
  assert.ok(!terminal.picture().join('\n').includes('tokens/s'), 'nothing is left of the picture');
  type('clear; stty -a');
  await shows((lines) => lines.some((line) => / icanon/.test(line)), 'lines are edited again');
}

test('a live picture is the stored one, but for its figures', async () => {
  startWatch('--interval', '1');
  try {
    await shows((lines) => masked(lines) === stored, 'the stored picture is there');
  } catch {
    assert.equal(masked(terminal.picture()), stored);
  }
  assert.deepEqual(terminal.modes(), { hasScreen: true, hasCursor: false });
});

test('keys pause it, change its interval and help; a smaller terminal has a smaller picture', async () => {
  terminal.press('p');
  await shows(([title = '']) => title.includes('paused at'), 'it is paused');
  terminal.press('p', '+');
  await shows(([title = '']) => title.includes('every 2 s'), 'it goes on at another interval');
  terminal.press('?');
  await shows((lines) => lines.some((line) => line.startsWith('IDLE: ')), 'it helps');
  terminal.press('?');
  terminal.resize(60, 22);
  await shows((lines) => lines.some((line) => /IDLE +HOP/.test(line)), 'stages and links share lines');
  const lines = terminal.picture();
  assert.ok(lines.length <= 22 && lines.every((line) => line.length <= 60));
  assert.match(lines.at(-1) ?? '', /^q quit/);
  terminal.resize(80, 40);
  await shows((all) => all.some((line) => line.startsWith('╰─◀')), 'there is room for all again');
});

test('an agent that hangs is told of, while the view goes on; then it is whole again', async () => {
  const { pid } = agents.agent('local-2');
  process.kill(pid, 'SIGSTOP');
  try {
    await shows((lines) => lines.some((line) => line.startsWith('! local-2: does not answer: ')), 'it is told of');
    const [first = ''] = terminal.picture();
    await shows(([title = '']) => title !== first, 'the view goes on');
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await shows(([title = '']) => title.startsWith('tale  ready on local, local-2'), 'it is whole again');
});

test('q ends it well, and the terminal is as it was', async () => {
  terminal.press('q');
  await assertRestored(0);
});

test('so it is after a signal', async () => {
  startWatch();
  await shows(([title = '']) => title.startsWith('tale'), 'there is a picture');
  const [line = ''] = agents.home.processes().filter((each) => each.includes(' watch '));
  process.kill(Number(line.split(' ')[0]), 'SIGTERM');
  await assertRestored(143);
});

test('on a dumb terminal pictures stand one below the other, without an escape', async () => {
  startWatch('--interval', '1', '| cat -v');
  await shows((lines) => lines.join(' ').includes('TERMINAL_NEEDED'), 'a pipe is refused');
  type(`clear; TERM=dumb ${process.execPath} ${main} watch ${plan} --interval 1`);
  await shows((lines) => lines.filter((line) => line.startsWith('+-<')).length >= 1, 'there is a picture');
  assert.equal(terminal.modes().hasScreen, false);
  terminal.press('C-c');
  await shows((lines) => lines.at(-1)?.startsWith('$') === true, 'Ctrl-C ends it');
});

test('--once prints a picture without an escape, and --once --json its figures', async () => {
  const { exit, out, err } = await agents.home.run(['watch', plan, '--once', '--interval', '1']);
  assert.equal(exit, 0, err);
  assert.ok(!out.includes('\x1b') && out.startsWith('tale  ready on local, local-2 '), out);
  const told = await agents.home.run(['watch', plan, '--once', '--json']);
  assert.equal(told.exit, 0, told.err);
  const view = JSON.parse(told.out) as {
    readonly ready: boolean;
    readonly tokens: { readonly generated: number; readonly perSecond: number };
    readonly stages: readonly { readonly state: string; readonly decodeSeconds: number | null }[];
    readonly links: readonly { readonly kind: string; readonly isUp: boolean | null }[];
    readonly journals: readonly { readonly records: number }[];
    readonly problems: readonly unknown[];
  };
  assert.deepEqual([view.ready, view.problems], [true, []]);
  assert.ok(view.tokens.generated > 100 && view.tokens.perSecond >= 0);
  assert.deepEqual(
    view.stages.map(({ state }) => state),
    ['loaded', 'loaded', 'loaded', 'loaded'],
  );
  assert.deepEqual(
    view.links.map(({ kind, isUp }) => [kind, isUp]),
    [
      ['within-agent', null],
      ['between-agents', true],
      ['within-agent', null],
      ['between-agents', true],
    ],
  );
  assert.ok(view.journals.every(({ records }) => records > 0));
});

test('a ring that is not loaded is shown as such, with the exit status of what is not ready', async () => {
  const other = agents.writePlan({ ring: 'other', stages: [['local', '0-7']] });
  const { exit, out } = await agents.home.run(['watch', other, '--once', '--interval', '1']);
  assert.equal(exit, 3);
  assert.match(out, /^other {2}not loaded/);
  assert.match(out, /! the ring is not loaded/);
});

test('the head’s agent keeps the speed of the first hour', async () => {
  const against = async (): Promise<unknown> => {
    const { out } = await agents.home.run(['watch', plan, '--once', '--json']);
    return (JSON.parse(out) as { readonly decay: { readonly against: unknown } }).decay.against;
  };
  await eventually(async () => (await against()) === 'first-hour', { what: 'a ratio to the first hour', withinMs });
});
