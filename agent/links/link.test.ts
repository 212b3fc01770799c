import assert from 'node:assert/strict';
import { after, afterEach, before, suite, test } from 'node:test';

import { Metadata } from '@grpc/grpc-js';
import { crc32c } from '@node-rs/crc32';

import { P4Error } from '../../protocol/errors.ts';
import { encodeHopFrame } from '../../protocol/hop-codec.ts';
import { decodeFrame, encodeFrame, noStep } from '../../protocol/hop-frame.ts';
import type { HopItem } from '../../protocol/hop-items.ts';
import { generation, nodeIndex, requestId, ringName, sessionId, slotIndex, type HostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { protocolVersion } from '../../protocol/protocol-version.ts';
import { hopsPath } from '../../protocol/rpc-definition.ts';
import { errorOf } from '../../protocol/rpc-error.ts';
import { PeerChannel } from '../../transport/peer-channel.ts';
import { Relay, type RelayOptions } from '../../test/rpc/relay.ts';
import { alpha, beta, failureOf, startTestServer, testFleet, until } from '../../test/rpc/test-fleet.ts';
import type { TestFleet, TestServer } from '../../test/rpc/test-fleet.ts';
import { edgeMetadata } from './edge-metadata.ts';
import { dialLink, type DialOptions } from './link-sender.ts';
import type { EdgeAddress, EdgeGate, Link } from './link.ts';

const edge: EdgeAddress = {
  ring: ringName('story'),
  generation: generation('1234567890123456789'),
  source: nodeIndex(0),
  destination: nodeIndex(1),
};

/** A frame of one decode row. */
function frameOf(hidden: Float32Array, of: EdgeAddress = edge): Uint8Array<ArrayBuffer> {
  const row: HopItem = {
    ...{ kind: 'rows', session: sessionId(1), request: requestId(1), slot: slotIndex(0), step: 1, firstPosition: 5 },
    ...{ rowCount: 1, phase: 'decode', samples: true, alone: false },
  };
  const { source, destination } = of;
  return encodeFrame({
    ...{ source, destination, generation: of.generation, number: 0n, completes: 0, slowest: noStep, items: [row] },
    ...{ tokens: Uint32Array.of(7), hidden },
  });
}

interface Received {
  readonly frame: Uint8Array<ArrayBuffer>;
  readonly finished: () => void;
}

/** A node that keeps what it gets, and finishes it when it is told to. */
class TestNode {
  readonly received: Received[] = [];
  readonly ends: (P4Error | null)[] = [];
  tellLoading: () => void = () => undefined;
  readonly gone = new AbortController();
  readonly edges: { readonly edge: EdgeAddress; readonly peer: HostName }[] = [];

  readonly gate: EdgeGate = (from, peer) => {
    this.edges.push({ edge: from, peer });
    if (from.generation !== edge.generation)
      return {
        kind: 'refused',
        error: new P4Error('GENERATION_MISMATCH', { ring: from.ring, node: from.destination }),
      };
    return {
      kind: 'accepted',
      receive: (frame, finished) => this.received.push({ frame, finished }),
      closed: (error) => this.ends.push(error),
      onLoading: (tell) => {
        this.tellLoading = tell;
      },
      gone: this.gone.signal,
    };
  };
}

suite('links between agents', () => {
  let fleet: TestFleet;
  let open: { close(): void }[] = [];
  let servers: TestServer[] = [];
  let acknowledged = 0;
  let loadings = 0;
  let losses: P4Error[] = [];

  before(async () => {
    fleet = await testFleet();
  });

  afterEach(async () => {
    for (const thing of open) thing.close();
    for (const { server } of servers) await server.stop(500);
    open = [];
    servers = [];
    acknowledged = 0;
    loadings = 0;
    losses = [];
  });

  after(() => {
    assert.equal(servers.length, 0);
  });

  const serve = async (node: TestNode): Promise<TestServer> => {
    const started = await startTestServer({ tls: fleet.beta, gate: node.gate });
    servers.push(started);
    return started;
  };

  const dial = async (port: number, changed: Partial<DialOptions> = {}): Promise<Link> => {
    const link = await dialLink({
      ...{ edge, peerHost: beta, address: '127.0.0.1', port, tls: fleet.alpha, deadlineMs: 5000 },
      events: {
        acknowledged: (count) => (acknowledged += count),
        loading: () => (loadings += 1),
        lost: (error) => losses.push(error),
      },
      ...changed,
    });
    open.push(link);
    return link;
  };

  const relay = async (options: RelayOptions): Promise<{ relay: Relay; port: number }> => {
    const made = new Relay(options);
    open.push(made);
    return { relay: made, port: await made.listen() };
  };

  test('a node tells the agent before it that a stage loads, as long as the link stands (R1)', async () => {
    const node = new TestNode();
    const { port } = await serve(node);
    const link = await dial(port);
    node.tellLoading();
    await until(() => loadings === 1, 'it is told');
    assert.equal(acknowledged, 0, 'no frame is finished with it');
    link.close();
    await until(() => node.ends.length === 1, 'the link is closed');
    node.tellLoading();
    assert.equal(loadings, 1);
  });

  test('a node that goes tells the agent before it why', async () => {
    const node = new TestNode();
    const { port } = await serve(node);
    await dial(port);
    const gone = new P4Error('STAGE_LOST', { ring: edge.ring, node: 7, host: 'gamma' });
    node.gone.abort(gone);
    await until(() => losses.length === 1, 'the sender is told');
    assert.equal(losses[0]?.code, 'STAGE_LOST');
    assert.deepEqual(losses[0].facts, gone.facts);
    assert.deepEqual(node.ends, [gone], 'and the node itself once');
  });

  test('frames arrive whole, in order, with the link’s numbers, and are counted when they are finished', async () => {
    const node = new TestNode();
    const { port } = await serve(node);
    const link = await dial(port);
    assert.deepEqual(node.edges, [{ edge, peer: 'alpha' }]);
    const first = frameOf(Float32Array.of(0.5, -1.25, 3e-9));
    assert.equal(link.send(first), crc32c(first));
    link.send(frameOf(Float32Array.of(2)));
    await until(() => node.received.length === 2, 'both frames are there');
    const frames = node.received.map(({ frame }) => decodeFrame(frame));
    assert.deepEqual(
      frames.map(({ number }) => number),
      [1n, 2n],
    );
    assert.deepEqual(frames[0]?.hidden, Float32Array.of(0.5, -1.25, 3e-9));
    assert.equal(link.stats().unacknowledged, 2);
    assert.equal(acknowledged, 0);
    for (const { finished } of node.received) finished();
    node.received[0]?.finished();
    await until(() => acknowledged === 2, 'both are acknowledged');
    const stats = link.stats();
    assert.equal(stats.unacknowledged, 0);
    assert.equal(stats.frames, 2);
    assert.equal(stats.bytesAcknowledged, stats.bytes);
    assert.ok(stats.ackP50Ms > 0 && stats.ackP99Ms >= stats.ackP50Ms);
    assert.deepEqual(losses, []);
  });

  test('closing a link tells the node, and nobody that it was lost', async () => {
    const node = new TestNode();
    const { port } = await serve(node);
    const link = await dial(port);
    link.send(frameOf(Float32Array.of(1)));
    link.close();
    await until(() => node.ends.length === 1, 'the node is told');
    assert.equal(node.received.length, 1, 'what was sent before came first');
    assert.deepEqual(node.ends, [null]);
    assert.deepEqual(losses, []);
  });

  test('the gate’s refusal reaches the dialler with its code, and no node', async () => {
    const node = new TestNode();
    const { port } = await serve(node);
    const error = await failureOf(dial(port, { edge: { ...edge, generation: generation('5') } }));
    assert.equal(error.code, 'GENERATION_MISMATCH');
    assert.deepEqual(error.facts, { ring: 'story', node: 1 });
    assert.deepEqual(node.ends, []);
  });

  test('who answers is proved by certificate', async () => {
    const node = new TestNode();
    const { port } = await serve(node);
    const wrong = await failureOf(dial(port, { peerHost: alpha }));
    assert.equal(wrong.code, 'LINK_WRONG_PEER');
    assert.equal(wrong.facts['found'], 'beta');
    const self = await failureOf(dial(port, { tls: fleet.beta }));
    assert.equal(self.code, 'LINK_TO_SELF');
    const role = await failureOf(dial(port, { tls: fleet.operator }));
    assert.equal(role.code, 'ROLE_FORBIDDEN');
    assert.deepEqual(node.edges, []);
  });

  test('an address where nobody listens, and one that does not answer, are unreachable', async () => {
    const gone = await startTestServer({ tls: fleet.beta });
    await gone.server.stop(100);
    const refused = await failureOf(dial(gone.port));
    assert.equal(refused.code, 'AGENT_UNREACHABLE');
    assert.equal(refused.facts['why'], 'ECONNREFUSED');
    const node = new TestNode();
    const { port } = await serve(node);
    // Longer on its way than the dialler waits.
    const slow = await relay({ toPort: port, delayMs: 60_000 });
    const late = await failureOf(dial(slow.port, { deadlineMs: 300 }));
    assert.deepEqual([late.code, late.facts['why']], ['AGENT_UNREACHABLE', 'no answer in time']);
  });

  test('a broken connection loses the link at both ends, once', async () => {
    const node = new TestNode();
    const { port } = await serve(node);
    const between = await relay({ toPort: port });
    const link = await dial(between.port);
    link.send(frameOf(Float32Array.of(1)));
    await until(() => node.received.length === 1, 'the frame is there');
    between.relay.cut();
    await until(() => losses.length === 1 && node.ends.length === 1, 'both ends know');
    const [loss] = losses;
    assert.deepEqual([loss?.code, loss?.facts['peer']], ['LINK_LOST', 'beta']);
    assert.equal(node.ends[0]?.code, 'LINK_LOST');
    node.received[0]?.finished();
    link.close();
    // The next dial does not use what is broken.
    const again = await dial(between.port);
    again.send(frameOf(Float32Array.of(2)));
    await until(() => node.received.length === 2, 'the new link carries');
    assert.equal(losses.length, 1);
  });

  test('links to one agent share a connection', async () => {
    const node = new TestNode();
    const { port } = await serve(node);
    const between = await relay({ toPort: port });
    const first = await dial(between.port);
    const handshake = between.relay.bytes;
    await dial(between.port, { edge: { ...edge, destination: nodeIndex(2) } });
    assert.ok(between.relay.bytes - handshake < 1000, 'the second link needs no handshake');
    first.close();
    await until(() => node.ends.length === 1, 'the first is closed');
    assert.deepEqual(losses, [], 'the second stands');
  });

  test('the agent’s stop ends its incoming links by name', async () => {
    const node = new TestNode();
    const { port, server } = await serve(node);
    await dial(port);
    await server.stop(1000);
    await until(() => losses.length === 1, 'the sender knows');
    assert.equal(losses[0]?.code, 'AGENT_STOPPING');
    assert.equal(node.ends[0]?.code, 'AGENT_STOPPING');
  });

  test('a frame of 8 MiB crosses without waiting for credit', async () => {
    const node = new TestNode();
    const { port } = await serve(node);
    const between = await relay({ toPort: port });
    const link = await dial(between.port);
    // From here on the receiver can grant nothing; HTTP/2's own windows would stop the frame after 64 KiB.
    between.relay.isMute = true;
    const frame = frameOf(new Float32Array(2 * 1024 * 1024).fill(0.25));
    link.send(frame);
    await until(() => node.received.length === 1, 'the frame is there');
    assert.equal(Buffer.compare(node.received[0]?.frame ?? new Uint8Array(), frame), 0);
  });

  test('nothing of a frame can be read on the wire', async () => {
    const node = new TestNode();
    const { port } = await serve(node);
    const between = await relay({ toPort: port });
    const link = await dial(between.port);
    const hidden = Float32Array.from({ length: 4096 }, (_, index) => Math.sin(index));
    const frame = frameOf(hidden);
    const crossedBefore = between.relay.bytes;
    link.send(frame);
    await until(() => node.received.length === 1, 'the frame is there');
    assert.ok(between.relay.bytes - crossedBefore > frame.length, 'it did cross here');
    const wire = Buffer.concat(between.relay.chunks);
    for (let offset = 64; offset + 16 <= frame.length; offset += 16)
      assert.equal(wire.indexOf(frame.subarray(offset, offset + 16)), -1, `16 bytes from ${offset} crossed in clear`);
    assert.equal(wire.indexOf(String(edge.generation)), -1, 'nor the generation');
    assert.equal(wire.indexOf('p4h1'), -1, 'nor a frame’s magic');
  });

  suite('a neighbour that breaks the rules is cut off, and the node gets nothing', () => {
    /** Writes raw messages into a stream of Ring.Hops. */
    const sendRaw = async (
      messages: readonly Buffer[],
      metadata: Metadata,
      holder = fleet.alpha,
    ): Promise<{ node: TestNode; error: P4Error | null }> => {
      const node = new TestNode();
      const { port } = await serve(node);
      const channel = new PeerChannel({ peer: { host: beta, address: '127.0.0.1', port }, tls: holder });
      open.push(channel);
      const call = channel.client.makeBidiStreamRequest<Buffer, Buffer>(hopsPath, asIs, asIs, metadata);
      call.on('error', () => undefined);
      call.resume();
      const ended = new Promise<P4Error | null>((resolve) => {
        call.on('status', (end) => {
          resolve(errorOf(end));
        });
      });
      for (const message of messages) call.write(message);
      return { node, error: await ended };
    };
    const asIs = (bytes: Buffer): Buffer => bytes;
    const numbered = (number: number, of: EdgeAddress = edge): Buffer => {
      const frame = frameOf(Float32Array.of(1), of);
      new DataView(frame.buffer, frame.byteOffset).setBigUint64(16, BigInt(number), true);
      return encodeHopFrame({ frame, crc32c: crc32c(frame) });
    };

    test('a flipped bit', async () => {
      const bytes = numbered(1);
      // Within the hidden state, behind the message's and the frame's header.
      bytes.writeUInt8(bytes.readUInt8(3 + 65) ^ 1, 3 + 65);
      const { node, error } = await sendRaw([bytes], edgeMetadata(edge));
      assert.equal(error?.code, 'FRAME_CORRUPT');
      assert.equal(node.received.length, 0);
      assert.equal(node.ends[0]?.code, 'FRAME_CORRUPT');
      assert.equal(node.ends.length, 1);
    });

    test('a frame twice, or one left out', async () => {
      const twice = await sendRaw([numbered(1), numbered(1)], edgeMetadata(edge));
      assert.deepEqual([twice.error?.code, twice.error?.facts['field']], ['FRAME_INVALID', 'number']);
      assert.equal(twice.node.received.length, 1);
      const gap = await sendRaw([numbered(2)], edgeMetadata(edge));
      assert.deepEqual([gap.error?.code, gap.error?.facts['field']], ['FRAME_INVALID', 'number']);
    });

    test('a frame of another edge or generation', async () => {
      const foreign = numbered(1, { ...edge, generation: generation('9') });
      const { node, error } = await sendRaw([foreign], edgeMetadata(edge));
      assert.deepEqual([error?.code, error?.facts], ['FRAME_INVALID', { field: 'generation' }]);
      assert.equal(node.received.length, 0);
      const other = await sendRaw([numbered(1, { ...edge, destination: nodeIndex(3) })], edgeMetadata(edge));
      assert.deepEqual(other.error?.facts, { field: 'destination' });
    });

    test('more frames than the window', async () => {
      const frames = Array.from({ length: limits.linkWindowFrames + 1 }, (_, index) => numbered(index + 1));
      const { node, error } = await sendRaw(frames, edgeMetadata(edge));
      assert.equal(error?.code, 'LINK_WINDOW_EXCEEDED');
      assert.equal(node.received.length, limits.linkWindowFrames);
    });

    test('bytes that are no message', async () => {
      const { node, error } = await sendRaw([Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f])], edgeMetadata(edge));
      assert.equal(error?.code, 'FRAME_INVALID');
      assert.equal(node.received.length, 0);
    });

    test('another major version, told by name', async () => {
      const metadata = edgeMetadata(edge);
      const other = `${protocolVersion.major + 1}.0`;
      metadata.set('p4-protocol', other);
      const { node, error } = await sendRaw([], metadata);
      assert.deepEqual([error?.code, error?.facts['there']], ['PROTOCOL_MISMATCH', other]);
      assert.deepEqual(node.edges, []);
      const none = await sendRaw([], new Metadata());
      assert.equal(none.error?.code, 'PROTOCOL_MISMATCH');
    });

    test('metadata that names no edge', async () => {
      for (const [key, value] of [
        ['p4-ring', 'No Ring'],
        ['p4-generation', '-1'],
        ['p4-source', '1e3'],
      ] as const) {
        const metadata = edgeMetadata(edge);
        metadata.set(key, value);
        const { node, error } = await sendRaw([], metadata);
        assert.equal(error?.code, 'INVALID_ARGUMENT', key);
        assert.deepEqual(node.edges, []);
      }
    });
  });
});
