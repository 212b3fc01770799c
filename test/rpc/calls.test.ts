import assert from 'node:assert/strict';
import { connect } from 'node:tls';
import { after, before, suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import type { GatherEvent } from '../../protocol/messages.ts';
import { access } from '../../agent/rpc/access.ts';
import type { Caller } from '../../agent/rpc/calls.ts';
import type { AgentClient } from '../../provisioner/agent-client.ts';
import { beta, clientOf, failureOf, startTestServer, testFleet, until } from './test-fleet.ts';
import type { HolderName, TestFleet, TestServer } from './test-fleet.ts';

const soon = { deadlineMs: 10_000 };
const ring = { ring: 'story', generation: '7' };
const gather = { ...ring, session: 1, request: 1, from: 0 };

suite('calls between processes', () => {
  let fleet: TestFleet;
  let clients: AgentClient[] = [];
  let servers: TestServer[] = [];

  before(async () => {
    fleet = await testFleet();
  });

  after(async () => {
    for (const client of clients) client.close();
    for (const { server } of servers) await server.stop(1000);
    clients = [];
    servers = [];
  });

  const serve = async (options: Omit<Parameters<typeof startTestServer>[0], 'tls'>): Promise<TestServer> => {
    const started = await startTestServer({ tls: fleet.alpha, ...options });
    servers.push(started);
    return started;
  };

  const client = (
    port: number,
    holder: HolderName,
    host = undefined as Parameters<typeof clientOf>[2],
  ): AgentClient => {
    const made = clientOf(port, fleet[holder], host);
    clients.push(made);
    return made;
  };

  test('an answer comes back, and the handler knows who asked', async () => {
    const callers: Caller[] = [];
    const { port } = await serve({
      agent: {
        Probe: (request, caller) => {
          callers.push(caller);
          assert.deepEqual(request, ring);
          return Promise.resolve({ roundMs: 1.5 });
        },
      },
    });
    assert.deepEqual(await client(port, 'operator').call(['Agent', 'Probe'], ring, soon), { roundMs: 1.5 });
    const [caller, ...others] = callers;
    assert.ok(caller !== undefined && others.length === 0);
    assert.equal(caller.role, 'operator');
    assert.match(caller.from, /^127\.0\.0\.1:\d+$/);
    assert.equal(caller.signal.aborted, false, 'an answered call was not cancelled');
  });

  test('every role may make just the calls that are its own', async () => {
    let reached = 0;
    const reach = (): Promise<never> => {
      reached++;
      return Promise.reject(new P4Error('RING_UNKNOWN', {}));
    };
    const { port } = await serve({
      agent: { Describe: reach, Load: reach, Link: reach, Probe: reach, Unload: reach, Status: reach },
      outer: { OpenSession: reach, Submit: reach, Gather: reach, Cancel: reach, CloseSession: reach, Settle: reach },
    });
    for (const holder of ['operator', 'client', 'monitor', 'beta'] as const) {
      const role = holder === 'beta' ? 'agent' : holder;
      const asking = client(port, holder);
      const codes = {
        Describe: await failureOf(asking.call(['Agent', 'Describe'], {}, soon)),
        Link: await failureOf(asking.call(['Agent', 'Link'], ring, soon)),
        Probe: await failureOf(asking.call(['Agent', 'Probe'], ring, soon)),
        Unload: await failureOf(asking.call(['Agent', 'Unload'], ring, soon)),
        Status: await failureOf(asking.call(['Agent', 'Status'], { ring: '' }, soon)),
        Load: await failureOf(
          asking.stream(['Agent', 'Load'], { ...ring, loadId: '', planDigest: '', plan: '', stages: [] }, soon).next(),
        ),
        Gather: await failureOf(asking.stream(['Outer', 'Gather'], gather, soon).next()),
        Cancel: await failureOf(asking.call(['Outer', 'Cancel'], gather, soon)),
        Settle: await failureOf(asking.call(['Outer', 'Settle'], gather, soon)),
      };
      for (const [name, error] of Object.entries(codes)) {
        const allowed = Object.entries({ ...access.Agent, ...access.Outer }).find(([other]) => other === name)?.[1];
        const expected = allowed?.includes(role) === true ? 'RING_UNKNOWN' : 'ROLE_FORBIDDEN';
        assert.equal(error.code, expected, `${holder} calls ${name}`);
        if (expected === 'ROLE_FORBIDDEN') assert.equal(error.facts['role'], role);
      }
    }
    // operator: all 9; client: Status, Gather, Cancel, Settle; monitor: Status; an agent: none.
    assert.equal(reached, 9 + 4 + 1);
  });

  test('an error keeps its code and facts', async () => {
    const { port } = await serve({
      agent: {
        Unload: () => Promise.reject(new P4Error('GENERATION_MISMATCH', { ring: 'story', node: 3, hosts: ['a', 'b'] })),
      },
    });
    const error = await failureOf(client(port, 'operator').call(['Agent', 'Unload'], ring, soon));
    assert.equal(error.code, 'GENERATION_MISMATCH');
    assert.deepEqual(error.facts, { ring: 'story', node: 3, hosts: ['a', 'b'] });
  });

  test('facts that are too long for a header are shortened, and the code arrives', async () => {
    const faults = Array.from({ length: 200 }, (_, index) => `line ${index}: ${'something is wrong here; '.repeat(8)}`);
    const { port } = await serve({
      agent: { Unload: () => Promise.reject(new P4Error('PLAN_INVALID', { file: 'x.yaml', faults })) },
    });
    const error = await failureOf(client(port, 'operator').call(['Agent', 'Unload'], ring, soon));
    assert.equal(error.code, 'PLAN_INVALID');
    assert.equal(error.facts['file'], 'x.yaml');
    const arrived = error.facts['faults'];
    assert.ok(Array.isArray(arrived) && arrived.length > 10);
    assert.match(String(arrived.at(-1)), /^and \d+ more$/);
  });

  test('a bug is answered as one, logged with its stack, and handed on', async () => {
    const { port, bugs, lines } = await serve({
      agent: { Unload: () => Promise.reject(new TypeError('no such field')) },
    });
    const error = await failureOf(client(port, 'operator').call(['Agent', 'Unload'], ring, soon));
    assert.equal(error.code, 'AGENT_BUG');
    assert.doesNotMatch(error.message, /no such field/);
    assert.equal(bugs.length, 1);
    const line = lines.find(({ event }) => event === 'rpc-bug');
    assert.ok(line?.event === 'rpc-bug' && line.stack.includes('calls.test'));
  });

  test('a message over the limit is refused, and the connection lives on', async () => {
    const { port } = await serve({ agent: { Probe: () => Promise.resolve({ roundMs: 1 }) } });
    const asking = client(port, 'operator');
    const huge = { ...ring, loadId: '', planDigest: '', plan: 'x'.repeat(34 * 1024 * 1024), stages: [] };
    const error = await failureOf(asking.stream(['Agent', 'Load'], huge, soon).next());
    assert.equal(error.code, 'RPC_FAILED');
    assert.equal(error.facts['status'], 'RESOURCE_EXHAUSTED');
    assert.deepEqual(await asking.call(['Agent', 'Probe'], ring, soon), { roundMs: 1 });
  });

  test('a deadline ends the call, and the handler hears of it', async () => {
    let signal: AbortSignal | null = null;
    const { port } = await serve({
      agent: {
        Probe: (_request, caller) => {
          signal = caller.signal;
          return new Promise(() => undefined);
        },
      },
    });
    const error = await failureOf(client(port, 'operator').call(['Agent', 'Probe'], ring, { deadlineMs: 300 }));
    assert.equal(error.code, 'RPC_TIMED_OUT');
    assert.equal(error.facts['method'], 'Agent.Probe');
    await until(() => signal?.aborted === true, 'the handler’s signal is aborted');
  });

  test('a caller’s signal ends the call with its reason', async () => {
    const { port } = await serve({ agent: { Probe: () => new Promise(() => undefined) } });
    const controller = new AbortController();
    const call = client(port, 'operator').call(['Agent', 'Probe'], ring, { ...soon, signal: controller.signal });
    setTimeout(() => {
      controller.abort(new P4Error('CANCELLED', { by: 'SIGINT' }));
    }, 50);
    assert.deepEqual((await failureOf(call)).facts, { by: 'SIGINT' });
    await assert.rejects(
      client(port, 'operator').call(['Agent', 'Probe'], ring, { ...soon, signal: controller.signal }),
      { code: 'CANCELLED' },
    );
  });

  test('events come in order, and the stream’s error after them', async () => {
    const { port } = await serve({
      outer: {
        Gather: async (_request, _caller, stream) => {
          for (let index = 0; index < 100; index++) await stream.send(tokenEvent(index, 'a'));
          throw new P4Error('RING_UNKNOWN', { ring: 'story' });
        },
      },
    });
    const seen: number[] = [];
    const error = await failureOf(
      (async () => {
        for await (const event of client(port, 'client').stream(['Outer', 'Gather'], gather, soon))
          if (event.event === 'token') seen.push(event.token.index);
      })(),
    );
    assert.equal(error.code, 'RING_UNKNOWN');
    assert.deepEqual(
      seen,
      Array.from({ length: 100 }, (_, index) => index),
    );
  });

  test('a reader that leaves the loop aborts the handler', async () => {
    let ended: unknown = null;
    const { port } = await serve({
      outer: {
        Gather: async (_request, _caller, stream) => {
          try {
            for (let index = 0; ; index++) {
              await stream.send(tokenEvent(index, 'a'));
              await new Promise((resolve) => setTimeout(resolve, 2));
            }
          } catch (error) {
            ended = error;
            throw error;
          }
        },
      },
    });
    let count = 0;
    for await (const event of client(port, 'client').stream(['Outer', 'Gather'], gather, { deadlineMs: null })) {
      assert.equal(event.event, 'token');
      if (++count === 3) break;
    }
    await until(() => ended !== null, 'the handler ended');
    assert.ok(ended instanceof P4Error && ended.code === 'CANCELLED');
  });

  test('a slow reader holds up the handler, not the memory', async () => {
    let sent = 0;
    const text = 'x'.repeat(1000);
    const total = 5_000;
    const { port } = await serve({
      outer: {
        Gather: async (_request, _caller, stream) => {
          for (; sent < total; sent++) await stream.send(tokenEvent(sent, text));
        },
      },
    });
    const events = client(port, 'client').stream(['Outer', 'Gather'], gather, { deadlineMs: null });
    await events.next();
    let lastSent = -1;
    let sinceMs = 0;
    await until(() => {
      if (sent !== lastSent) sinceMs = performance.now();
      lastSent = sent;
      return performance.now() - sinceMs > 300;
    }, 'the handler stands still');
    // 64 KiB of credit, and some events in the streams' own buffers at either end.
    assert.ok(sent < 1000, `${sent} events were sent to a reader that took one`);
    let taken = 1;
    for await (const event of events) if (event.event === 'token') taken++;
    assert.equal(taken, total);
  });

  test('stop ends streams by name, waits for calls, and lets nobody in', async () => {
    let finish = (): void => undefined;
    const { port, server, lines } = await serve({
      agent: {
        Probe: () =>
          new Promise((resolve) => {
            finish = () => {
              resolve({ roundMs: 9 });
            };
          }),
      },
      outer: {
        Gather: async (_request, _caller, stream) => {
          await stream.send(tokenEvent(0, 'a'));
          await new Promise((_resolve, reject) => {
            stream.signal.addEventListener('abort', () => {
              reject(stream.signal.reason as Error);
            });
          });
        },
      },
    });
    const asking = client(port, 'operator');
    const probe = asking.call(['Agent', 'Probe'], ring, soon);
    const events = asking.stream(['Outer', 'Gather'], gather, { deadlineMs: null });
    await events.next();
    const stopped = server.stop(5000);
    assert.equal((await failureOf(events.next())).code, 'AGENT_STOPPING');
    finish();
    assert.deepEqual(await probe, { roundMs: 9 });
    await stopped;
    assert.deepEqual(lines.at(-1), { event: 'rpc-stopped', forced: false });
    const error = await failureOf(client(port, 'operator').call(['Agent', 'Probe'], ring, soon));
    assert.equal(error.code, 'AGENT_UNREACHABLE');
    assert.equal(error.facts['why'], 'ECONNREFUSED');
  });

  test('stop does not wait longer than it was told to', async () => {
    const { port, server, lines } = await serve({ agent: { Probe: () => new Promise(() => undefined) } });
    const probe = failureOf(client(port, 'operator').call(['Agent', 'Probe'], ring, soon));
    await until(() => lines.length > 0, 'it listens');
    await new Promise((resolve) => setTimeout(resolve, 100));
    const startMs = performance.now();
    await server.stop(200);
    assert.ok(performance.now() - startMs < 2000);
    assert.notEqual((await probe).code, 'RPC_TIMED_OUT');
    assert.deepEqual(lines.at(-1), { event: 'rpc-stopped', forced: true });
  });

  test('a peer without a certificate gets a closed connection, and not one byte', async () => {
    const { port, lines } = await serve({});
    const socket = connect({
      host: '127.0.0.1',
      port,
      ca: fleet.client.authority,
      servername: 'alpha',
      ALPNProtocols: ['h2'],
    });
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => (bytes += chunk.length));
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('close', resolve));
    assert.equal(bytes, 0);
    await until(() => lines.some(({ event }) => event === 'rpc-peer-refused'), 'the refusal is logged');
  });

  test('another fleet’s certificate is refused by either side', async () => {
    const { port } = await serve({});
    // The stranger trusts its own authority alone; with ours it trusts the server, which still does not trust it.
    const theirs = await failureOf(client(port, 'stranger').call(['Agent', 'Describe'], {}, soon));
    assert.equal(theirs.code, 'CERTIFICATE_REFUSED');
    assert.equal(theirs.facts['refusedBy'], 'here');
    const disguised = clientOf(port, { ...fleet.stranger, authority: fleet.alpha.authority });
    const ours = await failureOf(disguised.call(['Agent', 'Describe'], {}, soon));
    disguised.close();
    assert.equal(ours.code, 'CERTIFICATE_REFUSED');
    assert.equal(ours.facts['refusedBy'], 'there');
  });

  test('another host than the expected one is refused by name', async () => {
    const { port } = await serve({});
    const error = await failureOf(client(port, 'operator', beta).call(['Agent', 'Describe'], {}, soon));
    assert.equal(error.code, 'CERTIFICATE_REFUSED');
    assert.equal(error.facts['expected'], 'agent beta');
    assert.equal(error.facts['found'], 'agent alpha');
  });
});

const tokenEvent = (index: number, text: string): GatherEvent => ({ event: 'token', token: { index, token: 1, text } });
