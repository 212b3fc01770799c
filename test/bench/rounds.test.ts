import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { quiet } from '../fixture/local-agents.ts';
import { runRounds, turnsOf } from './rounds.ts';

suite('rounds', () => {
  test('are of arms that take turns, each as often in each place and after each neighbour', () => {
    const turns = Array.from({ length: 6 }, (_, stretch) => turnsOf(3, stretch).join(''));
    assert.deepEqual(turns, ['012', '210', '120', '021', '201', '102']);
  });

  test('run every arm once each, and the first is not counted', async () => {
    const ran: string[] = [];
    const arm = (name: string) => ({
      name,
      run: (round: number) => {
        ran.push(`${name}${round}`);
        return Promise.resolve(`${name}${round}`);
      },
    });
    const found = await runRounds({ what: 'letters', rounds: 2, arms: [arm('a'), arm('b')] }, quiet());
    assert.deepEqual(ran, ['a0', 'b0', 'b1', 'a1', 'b2', 'a2']);
    assert.deepEqual(found, [
      ['a1', 'a2'],
      ['b1', 'b2'],
    ]);
  });

  test('end where the command is ended', async () => {
    const { terminal } = quiet();
    const stop = new AbortController();
    let ran = 0;
    const run = (): Promise<number> => {
      ran += 1;
      stop.abort(new P4Error('CANCELLED', { by: 'the test' }));
      return Promise.resolve(ran);
    };
    const arms = [{ name: 'only', run }];
    await assert.rejects(runRounds({ what: 'counts', rounds: 9, arms }, { terminal, signal: stop.signal }), P4Error);
    assert.equal(ran, 1);
  });
});
