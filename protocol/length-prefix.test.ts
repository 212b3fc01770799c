import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from './errors.ts';
import { LengthPrefixReader, writeMessage } from './length-prefix.ts';

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

test('a message lies at the start of a buffer of its own, apart from the chunk it came in', () => {
  const stream = streamOf(['abcd']);
  const [message] = new LengthPrefixReader(100).push(stream);
  stream.fill(0);
  assert.ok(message);
  assert.equal(message.byteOffset, 0);
  assert.equal(message.buffer.byteLength, message.length);
  assert.equal(Buffer.from(message).toString(), 'abcd');
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
