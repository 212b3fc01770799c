import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import { Terminal, type TerminalMode } from './terminal.ts';
import { bytesText, tableLines } from './text-table.ts';

class Screen {
  readonly #out: PassThrough;
  readonly #err: PassThrough;
  readonly terminal: Terminal;

  constructor(mode: TerminalMode, isTTY: boolean) {
    this.#out = Object.assign(new PassThrough(), { isTTY });
    this.#err = Object.assign(new PassThrough(), { isTTY, columns: 60 });
    this.terminal = new Terminal(mode, { out: this.#out, err: this.#err });
  }

  get out(): string {
    return String(this.#out.read() ?? '');
  }

  get err(): string {
    return String(this.#err.read() ?? '');
  }
}

describe('a terminal', () => {
  test('draws progress over itself, and wipes it before anything else', () => {
    const screen = new Screen('text', true);
    screen.terminal.progress('cutting', 0.5);
    assert.equal(screen.err, `\r\x1b[2K  ${'█'.repeat(12)}${'░'.repeat(12)}  50%  cutting`);
    screen.terminal.progress('a label that is much too long for the width of this terminal', 0.4);
    assert.ok(screen.err.replace('\r\x1b[2K', '').length < 60);
    screen.terminal.progress('a label that is much too long for the width of this terminal', 0.5);
    assert.equal(screen.err, '', 'not so soon again');
    screen.terminal.line('done');
    assert.deepEqual([screen.err, screen.out], ['\r\x1b[2K', 'done\n']);
    screen.terminal.endProgress();
    assert.equal(screen.err, '');
  });

  test('draws several lines over themselves, as many as the screen has', () => {
    const screen = new Screen('text', true);
    screen.terminal.live(['ant  10 %', 'bee  20 %']);
    assert.equal(screen.err, '\r\x1b[2Kant  10 %\nbee  20 %');
    screen.terminal.live(['bee  30 %']);
    assert.equal(screen.err, '\r\x1b[2K\x1b[1A\r\x1b[2Kbee  30 %');
    screen.terminal.note('ant is done');
    assert.equal(screen.err, '\r\x1b[2Kant is done\n');
    const full = new Screen('text', true);
    full.terminal.live(Array.from({ length: 40 }, (_none, index) => `host ${index}`));
    const drawn = full.err.split('\n');
    assert.deepEqual([drawn.length, drawn.at(-1)], [23, '  18 more']);
  });

  test('draws nothing into a file or a pipe', () => {
    const screen = new Screen('text', false);
    screen.terminal.progress('cutting', 0.5);
    screen.terminal.live(['ant', 'bee']);
    screen.terminal.endProgress();
    assert.deepEqual([screen.err, screen.out], ['', '']);
  });

  test('ends a line only where one was begun', () => {
    const screen = new Screen('text', false);
    screen.terminal.endLine();
    screen.terminal.part('Once');
    screen.terminal.part('');
    screen.terminal.endLine();
    screen.terminal.part('upon\n');
    screen.terminal.endLine();
    assert.equal(screen.out, 'Once\nupon\n');
  });

  test('begins a note on a line of its own where both share a screen', () => {
    const [screen, pipe] = [new Screen('text', true), new Screen('text', false)];
    for (const { terminal } of [screen, pipe]) {
      terminal.part('Once');
      terminal.note('Interrupted.');
    }
    assert.deepEqual(
      [screen.out, screen.err, pipe.out, pipe.err],
      ['Once\n', 'Interrupted.\n', 'Once', 'Interrupted.\n'],
    );
  });

  test('prints nothing but JSON lines with --json, and a generation as text', () => {
    const screen = new Screen('json', true);
    screen.terminal.line('for people');
    screen.terminal.part('for people');
    screen.terminal.note('for people');
    screen.terminal.progress('for people', 0.5);
    screen.terminal.event({ event: 'ready', generation: 18446744073709551615n });
    assert.deepEqual([screen.out, screen.err], ['{"event":"ready","generation":"18446744073709551615"}\n', '']);
  });

  test('tells a failure as text or as JSON', () => {
    const error = new P4Error('HOST_UNKNOWN', { host: 'ant' });
    const text = new Screen('text', false);
    text.terminal.failure(error);
    assert.match(text.err, /^HOST_UNKNOWN: .*\n {2}host: ant\n/);
    const json = new Screen('json', false);
    json.terminal.failure(error);
    const { event, code, facts, exit } = JSON.parse(json.err) as Record<string, unknown>;
    assert.deepEqual([event, code, facts, exit], ['error', 'HOST_UNKNOWN', { host: 'ant' }, 3]);
  });
});

test('a table has columns as wide as their widest cell', () => {
  const columns = [
    { title: 'A', align: 'left' },
    { title: 'B', align: 'right' },
  ] as const;
  assert.deepEqual(tableLines(columns, [['long', '1'], ['x']]), ['A     B', 'long  1', 'x']);
});

test('bytes are told in the unit that fits', () => {
  assert.deepEqual([0, 1, 999, 1000, 1500, 999_999, 7_320_096, 123_456_789, 2.5e12].map(bytesText), [
    '0 B',
    '1 B',
    '999 B',
    '1.0 kB',
    '1.5 kB',
    '1000 kB',
    '7.3 MB',
    '123 MB',
    '2.5 TB',
  ]);
});
