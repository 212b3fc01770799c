import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { HostAnswer } from '../../provisioner/status-table.ts';
import { lookAt, sample, watchedPlan, type Moment } from '../../test/fixture/ring-looks.ts';
import { ringPicture, type LiveMarks, type Paper } from './ring-picture.ts';
import { plainMarks, unicodeMarks } from './styled-line.ts';
import { beginWatch, takeLook, viewOf, type RingView } from './watch-state.ts';

const paper: Paper = { style: { colour: false, marks: unicodeMarks }, width: 80, height: null };
const live: LiveMarks = { intervalSeconds: 2, isPaused: false, hasHelp: false, scroll: 0 };
const silent = { bee: { kind: 'error', error: new P4Error('AGENT_UNREACHABLE', { host: 'bee' }) } } as const;

/** After looks at these moments; the last one with these answers in the place of others. */
function seen(moments: readonly Moment[], answers: Readonly<Record<string, HostAnswer['answer']>> = {}): RingView {
  const state = moments.reduce(
    (watch, moment, place) => takeLook(watch, lookAt(moment, place === moments.length - 1 ? answers : {})),
    beginWatch(watchedPlan),
  );
  return present(viewOf(state), 'there were looks');
}

/** Ten tokens a second for twenty seconds, then five; the time of day depends on where one is. */
const seconds = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24];
const steady = seconds.map((each) => ({ seconds: each, tokens: each <= 20 ? 10 * each : 200 + 5 * (each - 20) }));
const timeless = (lines: readonly string[]): readonly string[] =>
  lines.map((line) => line.replace(/\d\d:\d\d:\d\d/, 'hh:mm:ss'));
const drawn = (view: RingView, change: Partial<Paper> = {}, marks: LiveMarks | null = null): readonly string[] =>
  timeless(ringPicture(view, { ...paper, ...change }, marks));

describe('a picture', () => {
  test('shows the ring, its speed then and now, who waits, journals, stages and links', () => {
    assert.deepEqual(drawn(seen(steady)), [
      'tale  ready on ant, bee                                                 hh:mm:ss',
      '3 stages on 2 hosts · loaded 24 s ago',
      '',
      'tokens/s    8.00  ██████████▅▅  prompt 0, most 10.0',
      'decay      0.92 of when this watch began',
      '           at equal load: 1 running, 0-25% of the context, 0-1 prompt rows a',
      '           token',
      'requests   1 running, 0 waiting · sessions 1 of 2, 3 waiting',
      'kv cache   100 of 1000 cells, 10%',
      'journal    ant  1.5 MB of 1.0 GB, 1200 records, +11.0/s',
      '           bee  1.5 MB of 1.0 GB, 1200 records, +11.0/s',
      '',
      '     STAGE  HOST  LAYERS     DECODE   IDLE  BUSY',
      '╭─▶      0  ant   0-3       50.0 ms    50%  ██████████░░░░░░░░░░',
      '│ ↓         within ant',
      '│        1  ant   4-7       25.0 ms    75%  █████░░░░░░░░░░░░░░░',
      '│ ↓         hop 5.00 ms to bee, 50.0 kB/s',
      '│        2  bee   8-11      25.0 ms    75%  █████░░░░░░░░░░░░░░░',
      '╰─◀         hop 2.00 ms home to ant, 50.0 kB/s',
    ]);
  });

  test('keeps to 60 columns, to ASCII, and to a low screen', () => {
    const lines = drawn(seen(steady), { width: 60, height: 20, style: { colour: false, marks: plainMarks } }, live);
    assert.deepEqual(lines, [
      'tale  ready on ant, bee                   every 2 s hh:mm:ss',
      '3 stages on 2 hosts - loaded 24 s ago',
      '',
      'tokens/s    8.00  ##########++  prompt 0, most 10.0',
      'decay      0.92 of when this watch began',
      '           at equal load: 1 running, 0-25% of the context,',
      '           0-1 prompt rows a token',
      'requests   1 running, 0 waiting - sessions 1 of 2, 3 waiting',
      'kv cache   100 of 1000 cells, 10%',
      'journal    ant  1.5 MB of 1.0 GB, 1200 records, +11.0/s',
      '           bee  1.5 MB of 1.0 GB, 1200 records, +11.0/s',
      '',
      '     STAGE  HOST  LAYERS     DECODE   IDLE       HOP',
      '+->      0  ant   0-3       50.0 ms    50%         -',
      '|        1  ant   4-7       25.0 ms    75%   5.00 ms',
      '+-<      2  bee   8-11      25.0 ms    75%   2.00 ms',
      '',
      'q quit - p pause - + - interval - j k move - ? help',
    ]);
  });

  test('of stages that do not fit is a window that moves', () => {
    const [first, second] = [0, 1].map((scroll) => drawn(seen(steady), { height: 17 }, { ...live, scroll }));
    assert.match(first?.[13] ?? '', /^╭─▶ +0 {2}ant/);
    assert.match(first?.[14] ?? '', /0 above, 2 below: j and k move/);
    assert.match(second?.[13] ?? '', /^│ +1 {2}ant/);
    assert.match(second?.[14] ?? '', /1 above, 1 below/);
    for (const height of [1, 5, 10, 17, 24]) assert.ok(drawn(seen(steady), { height }, live).length <= height);
    for (const width of [20, 39, 60, 200])
      assert.ok(drawn(seen(steady), { width }, live).every((line) => line.length <= width));
  });

  test('says of a host that does not answer why, and goes on with the others', () => {
    const lines = drawn(seen(steady, silent));
    assert.match(lines[0] ?? '', /degraded: ready on ant, no answer from bee/);
    assert.ok(lines.includes('│        2  bee   8-11     its agent does not answer'));
    assert.ok(lines.includes('           bee  no answer'));
    const at = lines.findIndex((line) => line.startsWith('! bee: does not answer: AGENT_UNREACHABLE: '));
    assert.ok(at > 0, lines.join('\n'));
    assert.match(lines.find((line) => line.startsWith('tokens/s')) ?? '', /8\.00/);
  });

  test('says what is degraded and why', () => {
    const lost = { seconds: 30, phase: 'suspended', reason: 'STAGE_LOST: stage 2 ended' };
    const lines = drawn(seen([lost]));
    assert.match(lines[0] ?? '', /degraded/);
    assert.ok(lines.includes('! ant: suspended: STAGE_LOST: stage 2 ended'), lines.join('\n'));
  });

  test('compares with the first hour where the head’s agent has kept it', () => {
    const level = { ring: 'tale', running: '1', context: '0-25%', beside: '0-1' };
    const more = [sample('p4_ring_first_hour_token_seconds', level, [0.08])];
    const lines = drawn(seen(steady.map((moment) => ({ ...moment, more }))));
    assert.ok(lines.includes('decay      0.73 of the first hour of this load'), lines.join('\n'));
  });

  test('in colour has the same text, and is red where it is slow', () => {
    const escape = /\u001b\[\d+m/g; // eslint-disable-line no-control-regex -- what colours are made of
    const lines = drawn(seen(steady), { style: { colour: true, marks: unicodeMarks } });
    assert.deepEqual(
      lines.map((line) => line.replaceAll(escape, '').trimEnd()),
      drawn(seen(steady)),
    );
    assert.ok(lines.some((line) => line.includes('\u001b[33m0.92 of when')));
  });

  test('that is paused says so, and help stands where the stages do', () => {
    const lines = drawn(seen(steady), { height: 30 }, { ...live, isPaused: true, hasHelp: true });
    assert.match(lines[0] ?? '', /paused at hh:mm:ss$/);
    assert.ok(lines.some((line) => line.startsWith('IDLE: ')));
    assert.ok(!lines.some((line) => line.includes('╭─▶')));
  });
});
