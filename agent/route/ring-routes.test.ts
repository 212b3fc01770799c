import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generation, hostName, loadId, nodeIndex, ringName } from '../../protocol/ids.ts';
import { RingRoutes } from './ring-routes.ts';

test('that a stage loads is told towards the head alone: it comes to an end there (R1)', () => {
  const [alpha, beta] = [hostName('alpha'), hostName('beta')];
  const routes = new RingRoutes({
    ...{ load: loadId('0'.repeat(32)), generation: generation('7'), host: alpha, trail: () => undefined },
    hosts: [alpha, beta, alpha, beta, alpha, beta],
    events: {
      returned: () => undefined,
      frameFinished: () => undefined,
      lost: (error) => {
        throw error;
      },
    },
  });
  const told: number[] = [];
  for (const source of [1, 3, 5]) {
    const destination = nodeIndex((source + 1) % 6);
    const edge = { ring: ringName('toy'), generation: generation('7'), source: nodeIndex(source), destination };
    const answer = routes.incoming(edge);
    assert.ok(answer.kind === 'accepted');
    answer.onLoading(() => told.push(destination));
  }
  routes.tellLoading(nodeIndex(2));
  assert.deepEqual(told, [2]);
  routes.tellLoading(nodeIndex(4));
  assert.deepEqual(told, [2, 2, 4]);
});
