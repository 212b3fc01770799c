import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { present } from '../../protocol/assert.ts';
import { keptIndex, sessionId, tokenId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import {
  keeping,
  keptOnAll,
  keptRows,
  longestBeginning,
  noneKept,
  shrunk,
  used,
  type KeptPrefixes,
  type Leaving,
} from './kept-prefixes.ts';

const least = limits.adoptedRowsLeast;
const story = (length: number, from = 1): Leaving['tokens'] =>
  Array.from({ length }, (_none, row) => tokenId(from + row));

const left = (session: number, tokens: Leaving['tokens'], owner = 'ann'): Leaving => ({
  ...{ session: sessionId(session), owner, tokens },
  alone: tokens.map(() => false),
});

/** All of them kept, one after another, and known to be whole on every stage. */
function keptOf(most: number, ...leavings: readonly Leaving[]): KeptPrefixes {
  let kept = noneKept(most);
  for (const leaving of leavings) {
    kept = keeping(kept, leaving).kept;
    kept = keptOnAll(kept, { session: leaving.session, length: leaving.tokens.length }).kept;
  }
  return kept;
}

const sessionsOf = ({ entries }: KeptPrefixes): number[] => entries.map(({ session }) => session);

suite('what a session leaves', () => {
  test('is kept in the first free place, and in that of what was used longest ago when all are taken', () => {
    const kept = keptOf(2, left(1, story(30)), left(2, story(30, 100)));
    const next = keeping(kept, left(3, story(30, 200)));
    assert.deepEqual([next.index, next.dropped], [0, [0]]);
    assert.deepEqual(sessionsOf(next.kept), [2, 3]);
    const [first] = kept.entries;
    const touched = used(kept, present(first, 'one is kept'));
    assert.deepEqual(sessionsOf(keeping(touched, left(3, story(30, 200))).kept), [1, 3]);
  });

  test('is not kept where it is short, or nothing is kept at all', () => {
    assert.equal(keeping(noneKept(2), left(1, story(least - 1))).index, null);
    assert.equal(keeping(noneKept(2), left(1, story(least))).index, 0);
    assert.equal(keeping(noneKept(0), left(1, story(least))).index, null);
  });

  test('takes the place of its own beginning, and is not kept where more of it is there', () => {
    const kept = keptOf(4, left(1, story(30)), left(2, story(50, 300)));
    const longer = keeping(kept, left(3, story(60)));
    assert.deepEqual([longer.dropped, sessionsOf(longer.kept)], [[0], [2, 3]]);
    const shorter = keeping(longer.kept, left(4, story(40)));
    assert.deepEqual([shorter.index, sessionsOf(shorter.kept)], [null, [2, 3]]);
    const another = keeping(longer.kept, left(4, story(40), 'bob'));
    assert.deepEqual([another.index, another.dropped], [2, []], 'what another owner has is not looked at');
  });

  test('is dropped when a stage has lost some of it, and stays when its news comes twice or late', () => {
    const { kept } = keeping(noneKept(2), left(1, story(30)));
    assert.deepEqual(keptOnAll(kept, { session: sessionId(1), length: 29 }), { kept: noneKept(2), dropped: [0] });
    const whole = keptOnAll(kept, { session: sessionId(1), length: 30 }).kept;
    assert.deepEqual(keptOnAll(whole, { session: sessionId(1), length: 3 }), { kept: whole, dropped: [] });
    assert.deepEqual(keptOnAll(whole, { session: sessionId(9), length: 3 }), { kept: whole, dropped: [] });
  });
});

suite('a prompt', () => {
  const found = (kept: KeptPrefixes, prompt: Leaving['tokens'], owner = 'ann') => {
    const beginning = longestBeginning(kept, owner, prompt);
    return beginning === null ? null : [Number(beginning.prefix.session), beginning.length];
  };

  test('begins with the longest that is there', () => {
    const kept = keptOf(4, left(1, [...story(20), ...story(20, 500)]), left(2, [...story(30), ...story(9, 600)]));
    assert.deepEqual(found(kept, [...story(30), ...story(40, 700)]), [2, 30]);
    assert.deepEqual(found(kept, [...story(20), ...story(40, 500)]), [1, 40]);
    assert.equal(found(kept, [...story(least - 1), ...story(90, 900)]), null, 'too little to be worth it');
  });

  test('runs its last row in any case', () => {
    const kept = keptOf(4, left(1, story(40)));
    assert.deepEqual(found(kept, story(40)), [1, 39]);
    assert.deepEqual(found(kept, story(30)), [1, 29]);
    assert.equal(found(kept, story(least)), null);
    assert.equal(found(kept, []), null);
  });

  test('has nothing of another owner, or of what a stage may lack', () => {
    assert.equal(found(keptOf(4, left(1, story(40), 'bob')), story(60)), null);
    assert.equal(found(keeping(noneKept(2), left(1, story(40))).kept, story(60)), null);
  });
});

test('what was used longest ago makes room, as far as it is needed', () => {
  const kept = keptOf(4, left(1, story(30)), left(2, story(20, 100)), left(3, story(40, 200)));
  assert.equal(keptRows(kept), 90);
  assert.deepEqual(shrunk(kept, 90), { kept, dropped: [] });
  assert.deepEqual(shrunk(kept, 89).dropped, [keptIndex(0)]);
  assert.deepEqual(shrunk(kept, 59).dropped, [0, 1]);
  assert.deepEqual(shrunk(kept, -1).kept, noneKept(4));
});
