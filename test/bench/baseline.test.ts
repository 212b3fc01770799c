import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { baselineArm, baselineVerdicts, lastNumber } from './baseline.ts';
import { spreadOf } from './statistics.ts';

const { signal } = new AbortController();

suite('the command of --baseline', () => {
  test('says its speed in its last number', () => {
    assert.equal(lastNumber('x', 'prompt eval 120 tokens/s\ndecode 62.4 tok/s\n'), 62.4);
    assert.throws(() => lastNumber('x', 'no figures'), P4Error);
    assert.throws(() => lastNumber('x', '0'), P4Error);
  });

  test('runs once each time it is asked to, and is compared by medians', async () => {
    const baseline = baselineArm('echo speed: 50.5', signal);
    await baseline.run();
    await baseline.run();
    assert.deepEqual(baseline.tokensPerSecond, [50.5, 50.5]);
    const [speed, ratio] = baselineVerdicts(baseline.tokensPerSecond, spreadOf([101]));
    assert.deepEqual([speed?.found.runs, ratio?.found.median, ratio?.isMet], [2, 2, null]);
  });

  test('is refused where it fails, and needs not be there', async () => {
    await assert.rejects(baselineArm('exit 3', signal).run(), /--baseline/);
    const none = baselineArm(null, signal);
    await none.run();
    assert.deepEqual(baselineVerdicts(none.tokensPerSecond, spreadOf([1])), []);
  });
});
