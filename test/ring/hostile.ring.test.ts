/**
 * What a peer that does not keep to the protocol gets from a listening agent: a refusal that says why, or a closed
 * connection. The agent lives on, and its rings go on.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connect as connectPlain, type Socket } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Client, credentials, Metadata, type StatusObject } from '@grpc/grpc-js';
import { crc32c } from '@node-rs/crc32';

import { present } from '../../protocol/assert.ts';
import { encodeHopFrame } from '../../protocol/hop-codec.ts';
import { encodeFrame, noStep } from '../../protocol/hop-frame.ts';
import { hostName, nodeIndex, type Generation } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { protocolVersion, protocolVersionText } from '../../protocol/protocol-version.ts';
import { hopsPath } from '../../protocol/rpc-definition.ts';
import { errorOf } from '../../protocol/rpc-error.ts';
import { secureContext, tlsOptions, type TlsIdentity } from '../../protocol/tls-identity.ts';
import { ensureCertificate } from '../../provisioner/pki.ts';
import { eventually } from '../fixture/eventually.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import type { LoadedRing } from '../fixture/loaded-ring.ts';

let agents: LocalAgents;
let ring: LoadedRing;
let text: string;
let pids: readonly number[];
/** The neighbour's own: what a broken release of it, or whoever stole its key, would show. */
let neighbour: TlsIdentity;
let operator: TlsIdentity;

const story = { prompt: 'Once upon a time', maxTokens: 16 };

before(async () => {
  agents = await LocalAgents.start(2);
  const stages = [
    ['local', '0-3'],
    ['local-2', '4-7'],
  ] as const;
  ring = await agents.load({ ring: 'firm', stages, decode: 'exact' });
  ({ text } = await ring.askAlone(story));
  pids = await allPids();
  const holder = { role: 'agent', host: hostName('local-2'), addresses: ['127.0.0.1'] } as const;
  neighbour = (await ensureCertificate(agents.state, holder, new Date())).identity;
  operator = (await ensureCertificate(agents.state, { role: 'operator' }, new Date())).identity;
});
after(() => agents.stop());

/** Whatever a test did: the same processes answer as before. */
afterEach(async () => {
  assert.equal((await ring.askAlone(story)).text, text);
  assert.deepEqual(await allPids(), pids);
});

async function allPids(): Promise<number[]> {
  const stages = (await ring.nodes()).map(({ pid }) => pid);
  return [...agents.hosts.map((host) => agents.agent(host).pid), ...stages];
}

const at = () => ({ host: '127.0.0.1', port: agents.agent('local').port });

/** Sends bytes and waits until the other side has closed. @returns how many bytes it answered with */
async function untilClosed(
  socket: Socket | TLSSocket,
  ready: 'connect' | 'secureConnect',
  bytes: Buffer,
): Promise<number> {
  return new Promise((resolve) => {
    let heard = 0;
    socket.on('data', (data: Buffer) => (heard += data.length));
    // A reset is a closed connection too.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      resolve(heard);
    });
    socket.once(ready, () => socket.write(bytes));
    socket.setTimeout(limits.rpcHandshakeMs + 5_000, () => socket.destroy(new Error('it was not closed')));
  });
}

describe('a peer that speaks something else', () => {
  test('is closed: random bytes, plain HTTP, HTTP/2 without TLS', async () => {
    const greetings = [
      randomBytes(64 * 1024),
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    ];
    const heard = await Promise.all(greetings.map((bytes) => untilClosed(connectPlain(at()), 'connect', bytes)));
    // A TLS alert at most.
    for (const bytes of heard) assert.ok(bytes <= 16, `${String(bytes)} bytes were answered`);
  });

  test('is closed: TLS without a certificate', async () => {
    const ca = operator.authority;
    const bare = connectTls({ ...at(), ca, servername: 'local', ALPNProtocols: ['h2'] });
    assert.equal(await untilClosed(bare, 'secureConnect', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')), 0);
    const lines = (): boolean => agents.agent('local').log.includes('rpc-peer-refused');
    await eventually(lines, { what: 'the agent notes whom it refused' });
  });

  test('is closed with a good certificate too: garbage, and HTTP/2 frames that are none', async () => {
    const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    for (const bytes of [randomBytes(4096), Buffer.concat([preface, randomBytes(4096)])]) {
      const socket = connectTls({ ...tlsOptions(operator), ...at(), servername: 'local', ALPNProtocols: ['h2'] });
      await untilClosed(socket, 'secureConnect', bytes);
    }
  });
});

/** gRPC by hand, with any bytes as a message. */
function rawClient(tls: TlsIdentity): Client {
  const { host, port } = at();
  return new Client(`${host}:${String(port)}`, credentials.createFromSecureContext(secureContext(tls)), {
    'grpc.ssl_target_name_override': 'local',
    'grpc.max_send_message_length': -1,
    'grpc.use_local_subchannel_pool': 1,
  });
}

const asIs = (bytes: Buffer): Buffer => bytes;

describe('a message that is none', () => {
  const call = async (path: string, message: Buffer): Promise<StatusObject> => {
    const client = rawClient(operator);
    try {
      return await new Promise((resolve) => {
        const unary = client.makeUnaryRequest(path, asIs, asIs, message, new Metadata(), () => undefined);
        unary.once('status', resolve);
      });
    } finally {
      client.close();
    }
  };

  test('is refused: larger than any that the protocol has', async () => {
    const { code } = await call('/p4.v1.Outer/Submit', Buffer.alloc(limits.grpcMessageBytes + 1024));
    assert.equal(code, 8, 'RESOURCE_EXHAUSTED');
  });

  test('is refused: random bytes for every call', async () => {
    const unary = ['Agent/Link', 'Agent/Probe', 'Agent/Unload', 'Agent/Status', 'Outer/Submit', 'Outer/Cancel'];
    for (const name of [...unary, 'Agent/Load', 'Outer/OpenSession', 'Outer/Gather', 'Outer/Settle', 'Agent/None']) {
      const { code } = await call(
        `/p4.v1.${name}`,
        Buffer.concat([Buffer.from([0x0a, 0xff, 0xff, 0x7f]), randomBytes(99)]),
      );
      assert.notEqual(code, 0, name);
    }
  });

  test('is refused: a prompt that is too large, sampling that is no JSON, a session that is not', async () => {
    const held = await ring.open();
    const { session } = held;
    const fields = { session, parseSpecial: false, sampling: '', maxTokens: 1, stop: [], ignoreEnd: false };
    const submit = (change: object) =>
      ring.calls.submit({ ...fields, prompt: 'tokens', tokens: { ids: [1] }, ...change }, ring.signal);
    const large = ring.calls.submit(
      { ...fields, prompt: 'text', text: 'x'.repeat(limits.promptBytes + 1) },
      ring.signal,
    );
    await assert.rejects(large, { code: 'INVALID_ARGUMENT' });
    await assert.rejects(ring.calls.submit({ ...fields }, ring.signal), { code: 'INVALID_ARGUMENT' });
    await assert.rejects(submit({ sampling: '{' }), { code: 'INVALID_ARGUMENT' });
    await assert.rejects(submit({ sampling: '{"temperature":"hot"}' }), { code: 'SAMPLING_INVALID' });
    await assert.rejects(submit({ maxTokens: 0 }), { code: 'INVALID_ARGUMENT' });
    await assert.rejects(submit({ stop: [''] }), { code: 'INVALID_ARGUMENT' });
    await assert.rejects(submit({ tokens: { ids: [4_000_000_000] } }), { code: 'TOKEN_OUT_OF_RANGE' });
    await assert.rejects(submit({ tokens: { ids: [] } }), { code: 'PROMPT_EMPTY' });
    await assert.rejects(submit({ session: 4_000_000_000 }), { code: 'SESSION_UNKNOWN' });
    await held.letGo();
    await ring.untilEmpty();
  });
});

describe('a neighbour that opens a link', () => {
  /** The edge from the tail to the head, as the neighbour's agent opens it, with changes. */
  function metadataWith(changes: Readonly<Record<string, string>>): Metadata {
    const metadata = new Metadata();
    const { ring: name, generation } = ring.address;
    const good = { protocol: protocolVersionText, ring: name, generation, source: '1', destination: '0' };
    for (const [key, value] of Object.entries({ ...good, ...changes })) metadata.set(`p4-${key}`, value);
    return metadata;
  }

  /** Opens a link, sends messages when it is accepted, and waits for its end. */
  async function hops(tls: TlsIdentity, changes: Readonly<Record<string, string>>, messages: readonly Buffer[] = []) {
    const client = rawClient(tls);
    try {
      const end = await new Promise<StatusObject>((resolve) => {
        const call = client.makeBidiStreamRequest(hopsPath, asIs, asIs, metadataWith(changes));
        call.on('error', () => undefined);
        call.on('data', () => undefined);
        call.once('status', resolve);
        for (const message of messages) call.write(message);
      });
      return errorOf(end)?.code ?? `status ${String(end.code)}`;
    } finally {
      client.close();
    }
  }

  const next = (): string => String(ring.generation + 1n);

  test('of another generation, ring, edge, protocol or role is refused by name', async () => {
    assert.equal(await hops(neighbour, { generation: next() }), 'GENERATION_MISMATCH');
    assert.equal(await hops(neighbour, { generation: 'x' }), 'INVALID_ARGUMENT');
    assert.equal(await hops(neighbour, { ring: 'none' }), 'RING_UNKNOWN');
    assert.equal(await hops(neighbour, { ring: '../x' }), 'INVALID_ARGUMENT');
    assert.equal(await hops(neighbour, { source: '0', destination: '1' }), 'EDGE_UNKNOWN');
    assert.equal(await hops(neighbour, { source: '1', destination: '1' }), 'EDGE_UNKNOWN');
    assert.equal(await hops(neighbour, { source: '65535', destination: '0' }), 'EDGE_UNKNOWN');
    assert.equal(await hops(neighbour, { source: '-1' }), 'INVALID_ARGUMENT');
    assert.equal(await hops(neighbour, { protocol: `${protocolVersion.major + 1}.0` }), 'PROTOCOL_MISMATCH');
    assert.equal(await hops(operator, {}), 'ROLE_FORBIDDEN');
  });

  test('that stands already is refused, and what it sends reaches no stage', async () => {
    const message = (generation: Generation, bytes?: Uint8Array<ArrayBuffer>): Buffer => {
      const frame =
        bytes ??
        encodeFrame({
          ...{ source: nodeIndex(1), destination: nodeIndex(0), generation, number: 1n, completes: 0, slowest: noStep },
          ...{ items: [{ kind: 'probe', nonce: 1 }], tokens: new Uint32Array(0), hidden: null },
        });
      return Buffer.from(encodeHopFrame({ frame, crc32c: crc32c(frame) }));
    };
    const sent = [message(ring.generation), message((ring.generation + 1n) as Generation), randomBytes(5000)];
    for (const bytes of [...sent, message(ring.generation, new Uint8Array(randomBytes(200)))]) {
      assert.equal(await hops(neighbour, {}, [bytes]), 'EDGE_TAKEN');
      // Whose link it is has lost the other, as far as its agent can tell: the ring is joined anew (R1).
      assert.equal((await ring.askAlone(story)).text, text);
    }
    const { links } = await ring.status(hostName('local-2'));
    assert.equal(present(links[0] ?? null, 'the link stands').peer, 'local');
  });
});
