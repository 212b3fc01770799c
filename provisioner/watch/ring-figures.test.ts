import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { lookAt, planOf, sample, watchedPlan } from '../../test/fixture/ring-looks.ts';
import { ringFigures } from './ring-figures.ts';

const near = (found: number | null | undefined, wanted: number): void => {
  assert.ok(typeof found === 'number' && Math.abs(found - wanted) < 1e-9, `${String(found)} is not ${wanted}`);
};

describe('figures of a ring', () => {
  const figures = ringFigures(watchedPlan, lookAt({ seconds: 10 }), lookAt({ seconds: 14 }));

  test('are rates over the agents’ own time, and what is there at the second look', () => {
    near(figures.tokensPerSecond, 10);
    assert.equal(figures.promptTokensPerSecond, 0);
    assert.deepEqual([figures.tokens, figures.kvCellsUsed, figures.kvCellsLimit], [140, 100, 1000]);
    assert.deepEqual([figures.sessionsOpen, figures.sessionsLimit, figures.sessionsWaiting], [1, 2, 3]);
  });

  test('tell of each stage how long a decode takes and how long it has nothing to do', () => {
    near(figures.stages[0]?.decodeSeconds, 0.05);
    near(figures.stages[0]?.idleShare, 0.5);
    near(figures.stages[2]?.decodeSeconds, 0.025);
    near(figures.stages[2]?.idleShare, 0.75);
  });

  test('tell of each link between agents the way without the receiver’s time', () => {
    const [within, out, home] = figures.links;
    assert.deepEqual([within?.kind, within?.hopSeconds], ['within-agent', null]);
    near(out?.hopSeconds, 0.005);
    assert.deepEqual([out?.source, out?.destination, out?.host, out?.bytesPerSecond], [1, 2, 'bee', 50_000]);
    near(home?.hopSeconds, 0.002);
    assert.deepEqual([home?.destination, home?.host, home?.isUp], [0, 'ant', true]);
  });

  test('tell of each journal how it grows', () => {
    const journal = { state: 'open', bytes: 1_500_000, limitBytes: 1e9, records: 1200, recordsPerSecond: 11 };
    assert.deepEqual(figures.journals, [
      { host: 'ant', ...journal },
      { host: 'bee', ...journal },
    ]);
  });

  test('of one look have no rates', () => {
    const { tokensPerSecond, tokens, stages, links } = ringFigures(watchedPlan, null, lookAt({ seconds: 10 }));
    assert.deepEqual([tokensPerSecond, tokens], [null, 100]);
    assert.ok(stages.every(({ decodeSeconds, idleShare }) => decodeSeconds === null && idleShare === null));
    assert.ok(links.every(({ hopSeconds }) => hopSeconds === null));
  });

  test('begin anew with an agent that started again, and never run backwards', () => {
    const before = lookAt({ seconds: 100 });
    assert.equal(ringFigures(watchedPlan, before, lookAt({ seconds: 104, process: 8 })).tokensPerSecond, null);
    const again = sample('p4_stage_compute_seconds_total', { ring: 'tale', stage: '0' }, [0.5]);
    const [stage] = ringFigures(watchedPlan, before, lookAt({ seconds: 104, more: [again] })).stages;
    assert.deepEqual([stage?.decodeSeconds, stage?.idleShare], [null, null], 'the stage was loaded again');
  });

  test('know a stage by the age of what it said', () => {
    const old = sample('p4_stage_report_age_seconds', { ring: 'tale', stage: '0' }, [2]);
    const { stages } = ringFigures(watchedPlan, lookAt({ seconds: 10 }), lookAt({ seconds: 14, more: [old] }));
    near(stages[0]?.idleShare, 0);
  });

  test('leave out what a silent host knows, and call its stages silent', () => {
    const error = { kind: 'error', error: new P4Error('AGENT_UNREACHABLE') } as const;
    const found = ringFigures(watchedPlan, lookAt({ seconds: 10 }), lookAt({ seconds: 14 }, { bee: error }));
    assert.deepEqual(
      found.stages.map(({ state }) => state),
      ['loaded', 'loaded', 'silent'],
    );
    assert.deepEqual(
      found.links.map(({ hopSeconds, isUp }) => [hopSeconds, isUp]),
      [
        [null, null],
        [null, true],
        [null, null],
      ],
    );
    assert.deepEqual(found.journals[1], {
      ...{ host: 'bee', state: 'silent', bytes: null, limitBytes: null, records: null, recordsPerSecond: null },
    });
    near(found.tokensPerSecond, 10);
  });

  test('of a ring that had no work say of no stage that it was idle', () => {
    const still = sample('p4_ring_active_seconds_total', { ring: 'tale' }, [10]);
    const { stages } = ringFigures(watchedPlan, lookAt({ seconds: 10 }), lookAt({ seconds: 14, more: [still] }));
    assert.ok(stages.every(({ idleShare }) => idleShare === null));
  });

  test('of a ring of one stage have no link', () => {
    assert.deepEqual(ringFigures(planOf([['ant', '0-3']]), null, lookAt({ seconds: 1 })).links, []);
  });
});
