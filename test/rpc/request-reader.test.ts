/** Readers of requests over real connections to an agent that ends, comes back, and forgets. */
import assert from 'node:assert/strict';
import { after, afterEach, before, suite, test } from 'node:test';

import type { EventSender } from '../../agent/rpc/calls.ts';
import { P4Error } from '../../protocol/errors.ts';
import { generation, ringName } from '../../protocol/ids.ts';
import type { GatherEvent, GatherRequest, SessionOpened, Settlement } from '../../protocol/messages.ts';
import { defaultSampling } from '../../protocol/sampling.ts';
import type { AgentClient } from '../../provisioner/agent-client.ts';
import { RingCalls } from '../../provisioner/ring-calls.ts';
import { resumeRequest, runRequest, type RequestNews, type RequestOrder } from '../../provisioner/ring-request.ts';
import {
  clientOf,
  failureOf,
  startTestServer,
  testFleet,
  until,
  type TestFleet,
  type TestServer,
} from './test-fleet.ts';

const order: RequestOrder = {
  prompt: { kind: 'tokens', ids: [1, 2] },
  ...{ parseSpecial: true, sampling: defaultSampling, maxTokens: 8, stopStrings: [], ignoreEnd: false },
};

/** What an agent keeps of a ring, whichever process is the agent: sessions and the tokens of request 12. */
class KeptRing {
  readonly calls: string[] = [];
  readonly sessions = new Set<number>();
  /** Tokens that may be read so far, and whether those are all. */
  drawn = 0;
  isEnded = false;
  nextSession = 3;
  #waiting: (() => void)[] = [];

  draw(count: number): void {
    this.drawn += count;
    this.wake();
  }

  end(): void {
    this.isEnded = true;
    this.wake();
  }

  wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async news(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      signal.addEventListener('abort', () => {
        resolve();
      });
    });
    signal.throwIfAborted();
  }
}

const token = (index: number): GatherEvent => ({ event: 'token', token: { index, token: index, text: `${index} ` } });

suite('a reader of a request', () => {
  let fleet: TestFleet;
  let ring: KeptRing;
  let server: TestServer | null = null;
  let client: AgentClient;
  let port = 0;
  const leases = new Set<AbortController>();
  /** Ends the latest lease as an agent does when another reader takes it over. */
  let passOn = (): void => undefined;

  before(async () => {
    fleet = await testFleet();
  });

  afterEach(async () => {
    client.close();
    await server?.server.stop(200);
    server = null;
    port = 0;
  });

  after(() => {
    assert.equal(server, null);
  });

  const openSession = async (
    { session: standing }: { readonly session: number },
    stream: EventSender<SessionOpened>,
  ): Promise<void> => {
    ring.calls.push(`open ${standing}`);
    if (standing !== 0 && !ring.sessions.has(standing)) throw new P4Error('SESSION_UNKNOWN', { session: standing });
    const session = standing === 0 ? ring.nextSession++ : standing;
    ring.sessions.add(session);
    await stream.send({ session, contextTokens: 64, ahead: 0 });
    const broken = new AbortController();
    leases.add(broken);
    await new Promise<void>((resolve, reject) => {
      passOn = () => {
        leases.delete(broken);
        resolve();
      };
      const lose = (): void => {
        leases.delete(broken);
        reject(new P4Error('AGENT_STOPPING'));
      };
      for (const signal of [stream.signal, broken.signal]) signal.addEventListener('abort', lose);
    });
  };

  const gather = async ({ from, request }: GatherRequest, stream: EventSender<GatherEvent>): Promise<void> => {
    ring.calls.push(`gather ${from}`);
    if (request !== 12) throw new P4Error('REQUEST_UNKNOWN', { request });
    for (let next = from; ;) {
      while (next < ring.drawn) await stream.send(token(next++));
      if (ring.isEnded) break;
      await ring.news(stream.signal);
    }
    const end = { reason: 'length', text: '', promptTokens: 2, completionTokens: ring.drawn, detail: '' };
    await stream.send({ event: 'end', end });
  };

  const settle = (): Promise<Settlement> => {
    const [session = 0] = ring.sessions;
    const state = ring.isEnded ? 'settled' : 'running';
    return Promise.resolve({ state, reason: '', stages: [], emitted: ring.drawn, session });
  };

  /** The agent's process, or the next one in its place. */
  const start = async (submit?: () => Promise<never>): Promise<void> => {
    server = await startTestServer({
      tls: fleet.alpha,
      listen: [{ address: '127.0.0.1', port }],
      outer: {
        OpenSession: (request, _caller, stream) => openSession(request, stream),
        Submit: async ({ session }) => {
          ring.calls.push(`submit ${session}`);
          await submit?.();
          return { request: 12, promptTokens: 2 };
        },
        Gather: (request, _caller, stream) => gather(request, stream),
        CloseSession: ({ session }) => {
          ring.calls.push(`close ${session}`);
          ring.sessions.delete(session);
          return Promise.resolve({});
        },
        Settle: settle,
      },
    });
    if (port === 0) {
      port = server.port;
      client = clientOf(port, fleet.client);
    }
  };

  const stop = async (): Promise<void> => {
    await server?.server.stop(50);
    server = null;
  };

  /** A reader under way: what it was told, and what it comes to. */
  const run = (deadlineMs: number, signal = new AbortController().signal, resumed: { from: number } | null = null) => {
    const news: RequestNews[] = [];
    const shared = {
      ring: new RingCalls(client, ringName('tale'), generation('7')),
      ...{ signal, deadlineMs, onNews: (one: RequestNews) => news.push(one) },
    };
    const result =
      resumed === null
        ? runRequest({ ...shared, order })
        : resumeRequest({ ...shared, request: 12, from: resumed.from });
    const tokens = (): readonly number[] => news.flatMap((one) => (one.kind === 'token' ? [one.token.index] : []));
    const losses = (): readonly string[] => news.map(({ kind }) => kind).filter((kind) => kind.endsWith('connected'));
    return { result, tokens, losses };
  };

  const fresh = async (): Promise<void> => {
    ring = new KeptRing();
    await start();
  };

  test('goes on where it was when its agent starts again, with the session it had', async () => {
    await fresh();
    ring.draw(3);
    const { result, tokens, losses } = run(10_000);
    await until(() => tokens().length === 3, 'three tokens are read');
    await stop();
    await until(() => losses().includes('disconnected'), 'the loss is told');
    await start();
    ring.draw(2);
    ring.end();
    assert.equal((await result).end.completionTokens, 5);
    assert.deepEqual(tokens(), [0, 1, 2, 3, 4], 'no token twice, none missing');
    assert.deepEqual(losses(), ['disconnected', 'reconnected']);
    const asked = ['open 0', 'submit 3', 'gather 0', 'open 3', 'gather 3', 'close 3'];
    assert.deepEqual(ring.calls, asked);
  });

  test('makes both halves of its connection anew when its lease alone breaks', async () => {
    await fresh();
    ring.draw(2);
    const { result, tokens } = run(10_000);
    await until(() => tokens().length === 2, 'two tokens are read');
    for (const lease of leases) lease.abort();
    await until(() => ring.calls.includes('gather 2'), 'it gathers again');
    ring.draw(1);
    ring.end();
    await result;
    assert.deepEqual(tokens(), [0, 1, 2]);
    assert.deepEqual(ring.calls.slice(3), ['open 3', 'gather 2', 'close 3']);
  });

  test('takes its lease back, after a while, from another reader that took it over', async () => {
    await fresh();
    ring.draw(1);
    const { result, tokens, losses } = run(400);
    await until(() => tokens().length === 1, 'a token is read');
    passOn();
    await until(() => ring.calls.includes('open 3'), 'it holds the session again');
    ring.draw(1);
    ring.end();
    await result;
    assert.deepEqual(tokens(), [0, 1]);
    assert.deepEqual(ring.calls, ['open 0', 'submit 3', 'gather 0', 'open 3', 'close 3'], 'it read on all the while');
    assert.deepEqual(losses(), []);
  });

  test('gives up when the deadline has passed, says what was tried, and leaves the request running', async () => {
    await fresh();
    ring.draw(1);
    const { result, tokens } = run(1_500);
    await until(() => tokens().length === 1, 'a token is read');
    await stop();
    const sinceMs = performance.now();
    const { code, facts, rule } = await failureOf(result);
    assert.equal(code, 'REQUEST_CUT_OFF');
    assert.equal(rule.exit, 4);
    assert.deepEqual([facts['request'], facts['node'], facts['host']], [12, 0, 'alpha']);
    assert.match(String(facts['tried']), /^\d+ times in 2 s$/);
    assert.ok(performance.now() - sinceMs < 10_000);
    assert.ok(!ring.calls.includes('close 3'), 'whoever comes back finds it');
  });

  test('ends at once when the agent that came back refuses it for good', async () => {
    await fresh();
    ring.draw(1);
    const { result, tokens } = run(60_000);
    await until(() => tokens().length === 1, 'a token is read');
    await stop();
    server = await startTestServer({ tls: fleet.alpha, listen: [{ address: '127.0.0.1', port }] });
    assert.equal((await failureOf(result)).code, 'RING_UNKNOWN');
  });

  test('reads what there is of a request whose session is gone', async () => {
    await fresh();
    ring.draw(2);
    const { result, tokens } = run(10_000);
    await until(() => tokens().length === 2, 'two tokens are read');
    await stop();
    ring.sessions.clear();
    ring.draw(1);
    ring.end();
    await start();
    await result;
    assert.deepEqual(tokens(), [0, 1, 2]);
    assert.ok(!ring.calls.includes('close 3'));
  });

  test('submits once more in another session when it is not known whether the agent took the prompt', async () => {
    ring = new KeptRing();
    let isTaken = false;
    await start(() => {
      isTaken = true;
      return new Promise<never>(() => undefined);
    });
    const { result, tokens } = run(10_000);
    await until(() => isTaken, 'the prompt is there');
    await stop();
    await start();
    ring.draw(2);
    ring.end();
    await result;
    assert.deepEqual(tokens(), [0, 1]);
    assert.deepEqual(ring.calls, ['open 0', 'submit 3', 'close 3', 'open 0', 'submit 4', 'gather 0', 'close 4']);
  });

  test('can be interrupted while it waits for its agent', async () => {
    await fresh();
    const ending = new AbortController();
    const { result, losses } = run(60_000, ending.signal);
    await until(() => ring.calls.includes('gather 0'), 'it reads');
    await stop();
    await until(() => losses().includes('disconnected'), 'the loss is told');
    ending.abort(new P4Error('CANCELLED', { by: 'SIGINT' }));
    const { code, facts } = await failureOf(result);
    assert.deepEqual([code, facts['by']], ['CANCELLED', 'SIGINT']);
  });

  test('comes back to a request of a command that is gone: from where that was, in its place', async () => {
    await fresh();
    ring.sessions.add(9);
    ring.draw(5);
    const { result, tokens } = run(10_000, new AbortController().signal, { from: 3 });
    await until(() => tokens().length === 2, 'what is there is read');
    ring.draw(1);
    ring.end();
    await result;
    assert.deepEqual(tokens(), [3, 4, 5]);
    assert.deepEqual(ring.calls, ['open 9', 'gather 3', 'close 9'], 'it held the session, and ends it');
  });

  test('that came back only leaves when it is interrupted', async () => {
    await fresh();
    ring.sessions.add(9);
    ring.draw(1);
    const ending = new AbortController();
    const { result, tokens } = run(10_000, ending.signal, { from: 0 });
    await until(() => tokens().length === 1, 'a token is read');
    ending.abort(new P4Error('CANCELLED', { by: 'SIGINT' }));
    assert.equal((await failureOf(result)).code, 'CANCELLED');
    await until(() => leases.size === 0, 'its lease has ended');
    assert.deepEqual(ring.calls, ['open 9', 'gather 0']);
    assert.ok(ring.sessions.has(9));
  });
});
