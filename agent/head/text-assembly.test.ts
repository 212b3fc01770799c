import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addPiece, emptyAssembly, remainingText, type TextAssembly } from './text-assembly.ts';

/** Feeds pieces one by one; returns what each released, and what was left when nothing stopped it. */
function feed(pieces: readonly Uint8Array[], stops: readonly string[]): { released: string[]; rest: string | null } {
  let assembly: TextAssembly = emptyAssembly;
  const released: string[] = [];
  for (const piece of pieces) {
    const step = addPiece(assembly, piece, stops);
    assembly = step.assembly;
    released.push(step.released);
    if (step.stopped) return { released, rest: null };
  }
  return { released, rest: remainingText(assembly) };
}

const texts = (...pieces: string[]): Buffer[] => pieces.map((piece) => Buffer.from(piece));

test('a character whose bytes span tokens is held until it is complete', () => {
  const fox = Buffer.from('🦊!');
  const { released, rest } = feed([fox.subarray(0, 1), fox.subarray(1, 3), fox.subarray(3, 4), fox.subarray(4)], []);
  assert.deepEqual(released, ['', '', '🦊', '!']);
  assert.equal(rest, '');
});

test('a stop string never leaks a part of itself', () => {
  const { released, rest } = feed(texts('Once', ' upon', '\n', '\nU', 'ser', ':', ' not this'), ['\n\nUser:']);
  assert.deepEqual(released, ['Once', ' upon', '', '', '', '']);
  assert.equal(rest, null);
});

test('text that only looked like the start of a stop string is released', () => {
  const { released, rest } = feed(texts('a', '\n', '\nUs', 'ed', ' \n'), ['\n\nUser:']);
  assert.deepEqual(released, ['a', '', '', '\n\nUsed', ' ']);
  assert.equal(rest, '\n');
});

test('the earliest of several stop strings counts, wherever in a token it begins', () => {
  assert.deepEqual(feed(texts('one two three'), ['three', 'two']), { released: ['one '], rest: null });
  assert.deepEqual(feed(texts('xababac'), ['abac']), { released: ['xab'], rest: null });
});

test('whatever the bytes and wherever they are cut, the texts joined are the decoding of the bytes joined', () => {
  let seed = 12345;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) % below;
  };
  const alphabet = [
    0x41, 0x80, 0xbf, 0xc2, 0xc3, 0xe0, 0xa0, 0xed, 0x9f, 0xf0, 0x90, 0xf4, 0x8f, 0xff, 0xe2, 0x82, 0xac,
  ];
  for (let round = 0; round < 3000; round++) {
    const bytes = Buffer.from(Array.from({ length: random(12) }, () => alphabet[random(alphabet.length)] ?? 0));
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length;) {
      const length = 1 + random(4);
      pieces.push(bytes.subarray(at, at + length));
      at += length;
    }
    const { released, rest } = feed(pieces, []);
    assert.equal(released.join('') + (rest ?? ''), new TextDecoder().decode(bytes), bytes.toString('hex'));
  }
});
