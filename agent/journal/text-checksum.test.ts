import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32c } from '@node-rs/crc32';
import { textChecksum } from './text-checksum.ts';

test('short and long, ASCII or not: the checksum is the CRC32C of the UTF-8 bytes', () => {
  assert.equal(textChecksum('123456789'), 0xe306_9283); // RFC 3720, B.4: the check value
  const texts = [
    '',
    ' ',
    '12 8 1 3 17 55 1001   ',
    'Grüße',
    '\u{1f600}',
    'a'.repeat(127),
    'b'.repeat(128),
    'c'.repeat(129),
  ];
  const every = Array.from({ length: 128 }, (_none, code) => String.fromCharCode(code)).join('');
  for (const text of [...texts, every, `${every}${every}`]) assert.equal(textChecksum(text), crc32c(text), text);
});
