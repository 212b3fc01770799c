import assert from 'node:assert/strict';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { loadSync, type MethodDefinition, type ServiceDefinition } from '@grpc/proto-loader';

import { present } from './assert.ts';
import { decodeHopAck, decodeHopFrame, encodeHopAck, encodeHopFrame } from './hop-codec.ts';

interface LoadedFrame {
  readonly frame: Buffer;
  readonly crc32c: number;
}
interface LoadedAck {
  readonly frames: string;
  readonly loading: boolean;
}

// What proto-loader, hence protobufjs, makes of the same messages.
const path = join(import.meta.dirname, '..', '..', 'protocol', 'p4.proto');
const loaded = loadSync(path, { longs: String, defaults: true })['p4.v1.Ring'] as ServiceDefinition;
const hops = present(loaded['Hops'], 'p4.proto has Ring.Hops') as MethodDefinition<LoadedFrame, LoadedAck>;

const bytesOf = (length: number): Uint8Array<ArrayBuffer> => Uint8Array.from({ length }, (_, index) => index * 7);
const view = (bytes: Buffer): Uint8Array<ArrayBuffer> => Uint8Array.from(bytes);

suite('the hand-made codec of Ring.Hops', () => {
  test('writes a frame as protobufjs does', () => {
    for (const length of [1, 127, 128, 16_383, 16_384, 70_000, 2_097_152]) {
      for (const crc32c of [1, 0x7fff_ffff, 0xffff_ffff]) {
        const frame = bytesOf(length);
        const expected = hops.requestSerialize({ frame: Buffer.from(frame), crc32c });
        assert.ok(encodeHopFrame({ frame, crc32c }).equals(expected), `${length} bytes`);
      }
    }
  });

  test('reads what protobufjs writes, without copying the frame', () => {
    const frame = bytesOf(5000);
    const bytes = view(hops.requestSerialize({ frame: Buffer.from(frame), crc32c: 0xdead_beef }));
    const read = decodeHopFrame(bytes);
    assert.deepEqual(read, { frame, crc32c: 0xdead_beef });
    assert.equal(read.frame.buffer, bytes.buffer);
  });

  test('is read by protobufjs', () => {
    const frame = bytesOf(300);
    const read = hops.requestDeserialize(encodeHopFrame({ frame, crc32c: 77 }));
    assert.equal(read.crc32c, 77);
    assert.deepEqual(Uint8Array.from(read.frame), frame);
    for (const frames of [1, 127, 128, 0xffff_ffff, 2 ** 40, Number.MAX_SAFE_INTEGER])
      for (const loading of [false, true])
        assert.deepEqual(
          { ...hops.responseDeserialize(encodeHopAck({ frames, loading })) },
          { frames: String(frames), loading },
        );
  });

  test('reads acknowledgements of every size, and what is absent as none', () => {
    for (const frames of [0, 1, 300, 0xffff_ffff, 2 ** 52])
      for (const loading of [false, true]) {
        const bytes = view(hops.responseSerialize({ frames: String(frames), loading }));
        assert.deepEqual(decodeHopAck(bytes), { frames, loading });
      }
    assert.deepEqual(decodeHopAck(new Uint8Array()), { frames: 0, loading: false });
  });

  test('takes fields in any order and skips those it does not know', () => {
    const frame = [0x0a, 2, 9, 8];
    const crc = [0x15, 1, 2, 3, 4];
    // Fields 3 to 6: a varint, 8 bytes, a text, 4 bytes.
    const unknown = [0x18, 0xff, 1, 0x21, 1, 2, 3, 4, 5, 6, 7, 8, 0x2a, 3, 1, 1, 1, 0x35, 0, 0, 0, 0];
    const read = decodeHopFrame(Uint8Array.from([...unknown, ...crc, ...frame]));
    assert.deepEqual(read, { frame: Uint8Array.of(9, 8), crc32c: 0x0403_0201 });
  });

  test('refuses what is cut short, at every byte', () => {
    const whole = view(encodeHopFrame({ frame: bytesOf(200), crc32c: 5 }));
    let refused = 0;
    for (let length = 1; length < whole.length; length++) {
      try {
        // A message may end between its fields.
        assert.equal(decodeHopFrame(whole.subarray(0, length)).crc32c, 0);
      } catch (error) {
        assert.ok(error instanceof Error && 'code' in error && error.code === 'FRAME_INVALID');
        refused++;
      }
    }
    assert.equal(refused, whole.length - 2);
  });

  test('refuses lengths, varints, tags and wire types that cannot be', () => {
    const wrong = [
      [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
      [0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
      [0x00, 0x01],
      [0x0b],
      [0x1c],
      [0x18, ...Array.from({ length: 10 }, () => 0xff)],
    ];
    for (const bytes of wrong)
      assert.throws(() => decodeHopFrame(Uint8Array.from(bytes)), { code: 'FRAME_INVALID' }, String(bytes));
    const over = [0x08, ...Array.from({ length: 9 }, () => 0xff), 0x01];
    assert.throws(() => decodeHopAck(Uint8Array.from(over)), { code: 'FRAME_INVALID' });
  });
});
