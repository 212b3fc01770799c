import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { after, before, suite, test } from 'node:test';

import { limits } from '../../protocol/limits.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import { testFleet, type HolderName, type TestFleet } from '../../test/rpc/test-fleet.ts';
import type { LogLine } from '../log.ts';
import { MetricsListener } from './metrics-listener.ts';
import { metricsPages } from './metrics-pages.ts';
import { MetricsServer } from './metrics-server.ts';

const address = '127.0.0.1';
const serve = metricsPages({
  text: (format) => Promise.resolve(`p4_test{format="${format}"} 1\n`),
  readiness: () => ({ isReady: true, rings: [], journal: null }),
  log: () => undefined,
});

let fleet: TestFleet;
before(async () => {
  fleet = await testFleet();
});

suite('on the advertised address', () => {
  let listener: MetricsListener;
  before(async () => {
    listener = await MetricsListener.open({ at: { address, port: 0 }, tls: fleet.alpha, serve });
  });
  after(() => {
    listener.close();
  });

  /** Status and text, or the code of what went wrong. */
  async function ask(tls: Partial<TlsIdentity>): Promise<string> {
    const { certificate, key, authority } = tls;
    const call = request({
      ...{ host: address, port: listener.at.port, path: '/metrics', servername: 'alpha' },
      ...(certificate === undefined ? {} : { cert: certificate }),
      ...(key === undefined ? {} : { key }),
      ...(authority === undefined ? { rejectUnauthorized: false } : { ca: authority }),
    });
    call.end();
    try {
      const [response] = (await once(call, 'response')) as [IncomingMessage];
      let text = '';
      for await (const chunk of response) text += String(chunk);
      return `${String(response.statusCode)} ${text}`;
    } catch (error) {
      assert.ok(error instanceof Error);
      return 'cut off';
    }
  }

  test('Prometheus and the operator are shown metrics', async () => {
    for (const holder of ['monitor', 'operator'] as const)
      assert.equal(await ask(fleet[holder]), '200 p4_test{format="text"} 1\n', holder);
  });

  test('nobody else is, whatever certificate it has or has not', async () => {
    for (const holder of ['client', 'beta', 'stranger'] as const satisfies readonly HolderName[])
      assert.equal(await ask({ ...fleet[holder], authority: fleet.alpha.authority }), 'cut off', holder);
    assert.equal(await ask({}), 'cut off', 'none');
  });
});

suite('an address that is taken', () => {
  test('is told of once, and is listened at when it is free again', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const other = createServer().listen(0, address);
    await once(other, 'listening');
    const taken = other.address();
    assert.ok(typeof taken === 'object' && taken !== null);
    const log: LogLine[] = [];
    const server = await MetricsServer.start({
      ...{ config: { listen: [{ address, port: 7400 }] }, port: taken.port, tls: fleet.alpha, serve },
      log: (line) => log.push(line),
    });
    const isListening = (): boolean => server.plain !== null;
    assert.equal(isListening(), false);
    assert.match(server.places.fault, new RegExp(String(taken.port)));
    other.close();
    await once(other, 'close');
    t.mock.timers.tick(limits.metricRetryMs);
    while (!isListening()) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(server.places, { urls: [`http://${address}:${String(taken.port)}/metrics`], fault: '' });
    assert.deepEqual(
      log.map(({ event }) => event),
      ['metrics-not-listening', 'metrics-listening'],
    );
    server.stop();
  });
});
