import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { before, suite, test } from 'node:test';

import { AgentClient } from '../../provisioner/agent-client.ts';
import { alpha, clientOf, failureOf, startTestServer, testFleet, type TestFleet } from './test-fleet.ts';

const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));

suite('where an agent listens', () => {
  let fleet: TestFleet;

  before(async () => {
    fleet = await testFleet();
  });

  test('IPv4 and IPv6 addresses together', { skip: hasIpv6 ? false : 'no IPv6 here' }, async () => {
    const { server } = await startTestServer({ tls: fleet.alpha, listen: [{ address: '::1', port: 0 }] });
    const port = server.listen[0]?.port ?? 0;
    const client = AgentClient.connect({ host: alpha, address: '::1', port, tls: fleet.operator });
    assert.equal((await failureOf(client.call(['Agent', 'Describe'], {}, { deadlineMs: 5000 }))).code, 'RING_UNKNOWN');
    client.close();
    const second = startTestServer({ tls: fleet.beta, listen: [{ address: '::1', port }] });
    assert.deepEqual((await failureOf(second)).facts, { address: `[::1]:${port}` });
    await server.stop(500);
  });

  test('a port in use is told by its address, and the other addresses are let go', async () => {
    const { server, port } = await startTestServer({ tls: fleet.alpha });
    const free = await startTestServer({ tls: fleet.alpha });
    await free.server.stop(500);
    const taken = startTestServer({
      tls: fleet.beta,
      listen: [
        { address: '127.0.0.1', port: free.port },
        { address: '127.0.0.1', port },
      ],
    });
    const error = await failureOf(taken);
    assert.deepEqual([error.code, error.facts], ['ADDRESS_IN_USE', { address: `127.0.0.1:${port}` }]);
    const again = await startTestServer({ tls: fleet.beta, listen: [{ address: '127.0.0.1', port: free.port }] });
    await again.server.stop(500);
    await server.stop(500);
  });

  test('an agent that comes up is found by the next call, whatever failed before', async () => {
    const former = await startTestServer({ tls: fleet.alpha });
    await former.server.stop(500);
    const { port } = former;
    const client = clientOf(port, fleet.operator);
    const describe = (): Promise<unknown> => client.call(['Agent', 'Describe'], {}, { deadlineMs: 5000 });
    assert.equal((await failureOf(describe())).code, 'AGENT_UNREACHABLE');
    const { server } = await startTestServer({ tls: fleet.alpha, listen: [{ address: '127.0.0.1', port }] });
    const { code } = await failureOf(describe());
    client.close();
    await server.stop(500);
    assert.equal(code, 'RING_UNKNOWN');
  });

  test('an address of another machine is told as what it is', async () => {
    const error = await failureOf(startTestServer({ tls: fleet.alpha, listen: [{ address: '192.0.2.1', port: 0 }] }));
    assert.deepEqual([error.code, error.facts['why']], ['ADDRESS_UNAVAILABLE', 'EADDRNOTAVAIL']);
  });

  test('a key that is not the certificate’s is told before anything listens', async () => {
    const tls = { ...fleet.alpha, key: fleet.beta.key };
    assert.equal((await failureOf(startTestServer({ tls }))).code, 'CERTIFICATE_UNUSABLE');
    const garbled = { ...fleet.alpha, certificate: 'no PEM' };
    assert.equal((await failureOf(startTestServer({ tls: garbled }))).code, 'CERTIFICATE_UNUSABLE');
    assert.throws(() => clientOf(1, garbled), { code: 'CERTIFICATE_UNUSABLE' });
  });
});

test('a bug ends the process, after its answer had a chance to leave', async () => {
  const module = join(import.meta.dirname, '..', '..', 'agent', 'rpc', 'call-context.js');
  const program = `const { dieOfBug } = await import(${JSON.stringify(module)});
    dieOfBug(new Error('planted')); process.stdout.write('still here'); setTimeout(() => {}, 60_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  assert.equal(code, 1);
  assert.match(said, /still here/);
  assert.match(said, /planted/);
});
