/** A loaded ring that nobody asks anything costs its hosts next to nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { present } from '../../protocol/assert.ts';
import { cpuMs } from '../bench/process-usage.ts';
import { stories } from '../exactness/subjects.ts';
import { LocalRings } from '../fixture/local-rings.ts';

/** A hundredth of a core. */
const mostShare = 0.01;
const windowMs = 2000;
/** Compilers and collectors of garbage finish after the last request: the least of some windows is what idling costs. */
const windows = 3;

test('agents and stages of an idle ring take less than a hundredth of a core each', async () => {
  const rings = await LocalRings.start(2);
  try {
    const ring = await rings.load({
      ring: 'idle',
      model: stories.path,
      cut: [
        { first: 0, last: 3 },
        { first: 4, last: 7 },
      ],
      ...{ agents: 2, contextTokens: 256, sessions: 2, decode: 'fast' },
    });
    const { tokens } = await ring.ask({ prompt: 'Once upon a time', maxTokens: 32 });
    assert.equal(tokens.length, 32);
    const processes = (await ring.status()).flatMap(({ agent, rings: standing }) => [
      { name: 'an agent', pid: present(agent, 'an agent says what it is').pid },
      ...standing.flatMap(({ nodes }) => nodes.map(({ node, pid }) => ({ name: `stage ${node}`, pid }))),
    ]);
    assert.equal(processes.length, 4);
    const least = processes.map(() => Infinity);
    for (let window = 0; window < windows; window++) {
      const before = processes.map(({ pid }) => cpuMs(pid));
      await delay(windowMs);
      for (const [index, { pid }] of processes.entries()) {
        least[index] = Math.min(least[index] ?? Infinity, (cpuMs(pid) - (before[index] ?? 0)) / windowMs);
      }
    }
    for (const [index, { name }] of processes.entries()) {
      const share = least[index] ?? Infinity;
      assert.ok(share < mostShare, `${name} takes ${(share * 100).toFixed(2)} % of a core`);
    }
  } finally {
    await rings.stop();
  }
});
