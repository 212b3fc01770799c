import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from './errors.ts';
import { LengthPrefixReader, messageRoom, shortenedRoom, writeMessage } from './length-prefix.ts';

const texts = ['one', 'a longer message', '3'];

function streamOf(messages: readonly string[]): Buffer {
  const parts: Uint8Array[] = [];
  const sink = { cork: () => undefined, uncork: () => undefined, write: (bytes: Uint8Array) => parts.push(bytes) > 0 };
  for (const message of messages) writeMessage(sink, Buffer.from(message));
  return Buffer.concat(parts);
}

test('messages come out whole and in order, whatever the chunks', () => {
  const stream = streamOf(texts);
  for (let chunkBytes = 1; chunkBytes <= stream.length; chunkBytes++) {
    const reader = new LengthPrefixReader(100);
    const found: string[] = [];
    for (let at = 0; at < stream.length; at += chunkBytes) {
      for (const message of reader.push(stream.subarray(at, at + chunkBytes)))
        found.push(Buffer.from(message).toString());
    }
    assert.deepEqual(found, texts);
    assert.equal(reader.isBetweenMessages, true);
  }
});

test('a message that lies whole in a chunk is a view of it; one in pieces has a buffer with its length', () => {
  const stream = streamOf(['abcd', 'efg']);
  const [first, second] = new LengthPrefixReader(100).push(stream);
  assert.deepEqual([first?.buffer, second?.buffer], [stream.buffer, stream.buffer]);
  const reader = new LengthPrefixReader(100);
  reader.push(stream.subarray(0, 6));
  const [pieced, ...others] = reader.push(stream.subarray(6));
  assert.ok(pieced !== undefined && others.length === 1);
  assert.notEqual(pieced.buffer, stream.buffer);
  assert.deepEqual(Buffer.from(pieced.buffer), Buffer.from('\x04\0\0\0abcd'));
});

test('an end within a message can be told', () => {
  const reader = new LengthPrefixReader(100);
  reader.push(streamOf(['abcd']).subarray(0, 2));
  assert.equal(reader.isBetweenMessages, false);
  reader.push(streamOf(['abcd']).subarray(2, 6));
  assert.equal(reader.isBetweenMessages, false);
});

test('a length of 0 or beyond the limit is refused before anything is allocated for it', () => {
  const refused = (error: unknown): boolean => error instanceof P4Error && error.code === 'STAGE_PROTOCOL';
  assert.throws(() => new LengthPrefixReader(100).push(Buffer.from([0, 0, 0, 0])), refused);
  assert.throws(() => new LengthPrefixReader(100).push(Buffer.from([101, 0, 0, 0])), refused);
  assert.throws(() => new LengthPrefixReader(100).push(Buffer.from([255, 255, 255, 255])), refused);
});

test('8 MiB in small chunks cost one copy, not one for each chunk', () => {
  const body = Buffer.alloc(8 * 1024 * 1024, 7);
  const parts: Uint8Array[] = [];
  writeMessage({ cork: () => undefined, uncork: () => undefined, write: (bytes) => parts.push(bytes) > 0 }, body);
  const stream = Buffer.concat(parts);
  const reader = new LengthPrefixReader(body.length);
  const before = process.memoryUsage().arrayBuffers;
  let whole: Uint8Array | undefined;
  for (let at = 0; at < stream.length; at += 16_384) whole = reader.push(stream.subarray(at, at + 16_384))[0] ?? whole;
  assert.ok(whole);
  assert.equal(Buffer.compare(whole, body), 0);
  assert.ok(process.memoryUsage().arrayBuffers - before < 2 * body.length);
});

test('a message leaves with its length in one piece: copied when small, held together and not copied when large', () => {
  const calls: (string | Uint8Array)[] = [];
  const sink = {
    cork: () => calls.push('cork'),
    uncork: () => calls.push('uncork'),
    write: (bytes: Uint8Array) => calls.push(bytes) > 0,
  };
  writeMessage(sink, Buffer.from('abcd'));
  assert.deepEqual(calls.splice(0), [Buffer.from('\x04\0\0\0abcd')]);
  const large = Buffer.alloc(1024 * 1024, 7);
  writeMessage(sink, large);
  assert.deepEqual(calls.slice(0, 2), ['cork', Buffer.from([0, 0, 16, 0])]);
  assert.equal(calls[2], large);
  assert.deepEqual(calls.slice(3), ['uncork']);
});

test('what came in a chunk of its own, in pieces, or was made with its length goes out as it lies', () => {
  const written: Uint8Array[] = [];
  const refuse = (): void => assert.fail('nothing is held back');
  const sink = { cork: refuse, uncork: refuse, write: (bytes: Uint8Array) => written.push(bytes) > 0 };
  const body = Buffer.alloc(100_000, 7);
  const stream = new Uint8Array(4 + body.length);
  new DataView(stream.buffer).setUint32(0, body.length, true);
  stream.set(body, 4);
  const made = messageRoom(body.length);
  made.set(body);
  const pieces = new LengthPrefixReader(body.length);
  const messages = [
    ...new LengthPrefixReader(body.length).push(stream),
    ...pieces.push(stream.slice(0, 70_000)),
    ...pieces.push(stream.slice(70_000)),
    made,
  ];
  assert.equal(messages.length, 3);
  for (const message of messages) {
    writeMessage(sink, message);
    const [bytes] = written.splice(0);
    assert.equal(bytes?.buffer, message.buffer);
    assert.equal(Buffer.compare(bytes, stream), 0);
  }
});

test('room that became longer than its message goes out shortened', () => {
  const written: Uint8Array[] = [];
  const sink = {
    cork: () => undefined,
    uncork: () => undefined,
    write: (bytes: Uint8Array) => written.push(bytes) > 0,
  };
  const room = messageRoom(100);
  room.set([1, 2, 3]);
  const message = shortenedRoom(room, 3);
  writeMessage(sink, message);
  assert.deepEqual([...(written[0] ?? [])], [3, 0, 0, 0, 1, 2, 3]);
  assert.equal(written[0]?.buffer, room.buffer);
});

test('bytes that stand before a message and are not its length stay where they are', () => {
  const written: Uint8Array[] = [];
  const sink = {
    cork: () => undefined,
    uncork: () => undefined,
    write: (bytes: Uint8Array) => written.push(bytes) > 0,
  };
  const shared = Uint8Array.of(9, 0, 0, 0, 1, 2, 3);
  writeMessage(sink, shared.subarray(4));
  // A buffer that does not begin with it may be anybody's.
  const later = Uint8Array.of(0, 3, 0, 0, 0, 1, 2, 3);
  writeMessage(sink, later.subarray(5));
  for (const bytes of written) assert.deepEqual([...bytes], [3, 0, 0, 0, 1, 2, 3]);
  assert.ok(written[0]?.buffer !== shared.buffer && written[1]?.buffer !== later.buffer);
});
