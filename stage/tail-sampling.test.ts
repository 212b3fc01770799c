import assert from 'node:assert/strict';
import { test } from 'node:test';

import { nothingRan, type BeginItem } from '../protocol/hop-items.ts';
import { requestId, sessionId, slotIndex, tokenId, type TokenId } from '../protocol/ids.ts';
import { defaultSampling, type Sampling } from '../protocol/sampling.ts';
import { Candidates } from './candidates.ts';
import { decodeRows, sequenceRows, withEngine } from './engine-fixture.ts';
import { openSampler } from './sampler.ts';
import { TailSampling } from './tail-sampling.ts';

const prompt = [0, 379, 395, 264, 364].map(tokenId);
const request = requestId(100);
const steps = 24;

const beginOf = (sampling: Sampling, change: Partial<BeginItem> = {}): BeginItem => ({
  ...{ kind: 'begin', session: sessionId(1), request, slot: slotIndex(0), reusedRows: 0, ran: nothingRan },
  ...{ sampling, history: [], drawn: [] },
  ...change,
});

interface Bench {
  readonly open: () => TailSampling;
  /** What step k is drawn from, when `drawn` are the tokens of the steps before. */
  readonly logitsAfter: (drawn: readonly TokenId[]) => Float32Array;
}

function withBench(use: (bench: Bench) => void): void {
  withEngine({}, (engine) => {
    const candidates = new Candidates(engine.vocabulary.size);
    const opened: TailSampling[] = [];
    const open = (): TailSampling => {
      const tail = new TailSampling((sampling) => openSampler(engine.vocabulary, candidates, sampling));
      opened.push(tail);
      return tail;
    };
    const logitsAfter = (drawn: readonly TokenId[]): Float32Array => {
      engine.removeSequence(0);
      return decodeRows(engine, sequenceRows([...prompt, ...drawn])).at(-1) ?? new Float32Array();
    };
    try {
      use({ open, logitsAfter });
    } finally {
      for (const tail of opened) tail.close();
      candidates.free();
    }
  });
}

const kinds: Readonly<Record<string, Partial<Sampling>>> = {
  greedy: { temperature: 0 },
  'greedy with penalties': { temperature: 0, repeatPenalty: 1.4, presencePenalty: 0.5, repeatLastTokens: 12 },
  'a seeded temperature': { temperature: 1.2, topK: 0, topP: 1, minP: 0, seed: 7 },
  'a seeded temperature with penalties': { temperature: 1, seed: 8, repeatPenalty: 1.3, frequencyPenalty: 0.4 },
  'a grammar': { temperature: 0, grammar: 'root ::= ([a-z ] [a-z ] "." | [A-Z])*' },
  'all together': { temperature: 1, seed: 9, repeatPenalty: 1.3, grammar: 'root ::= ([a-z ] [a-z ] "!" | [A-Z])*' },
};

for (const [name, change] of Object.entries(kinds)) {
  test(`X3: a sampler that begins after a loss draws what the lost one would have drawn: ${name}`, () => {
    withBench(({ open, logitsAfter }) => {
      const sampling = { ...defaultSampling, ...change };
      const drawOn = (tail: TailSampling, drawn: TokenId[]): TokenId[] => {
        while (drawn.length < steps) {
          const draw = tail.draw(request, drawn.length, logitsAfter(drawn));
          assert.ok(draw.kind === 'token');
          drawn.push(draw.token);
        }
        return drawn;
      };
      const undisturbed = open();
      assert.equal(undisturbed.begin(beginOf(sampling, { history: prompt.slice(0, 2) })), null);
      undisturbed.acceptPrompt(request, Uint32Array.from(prompt.slice(2)));
      const whole = drawOn(undisturbed, []);
      assert.ok(new Set(whole).size > 1);
      for (const lost of [0, 1, 9, steps - 1]) {
        const again = open();
        const drawn = whole.slice(0, lost);
        assert.equal(again.begin(beginOf(sampling, { history: prompt, drawn })), null);
        assert.deepEqual(drawOn(again, [...drawn]), whole, `lost after ${String(lost)} tokens`);
      }
    });
  });
}

test('what was drawn is known to penalties and grammar: a sampler without it draws something else', () => {
  withBench(({ open, logitsAfter }) => {
    const sampling: Sampling = { ...defaultSampling, temperature: 0, grammar: 'root ::= "no, " "yes"' };
    const first = open();
    assert.equal(first.begin(beginOf(sampling)), null);
    const drawn: TokenId[] = [];
    while (drawn.length < 3) {
      const draw = first.draw(request, drawn.length, logitsAfter(drawn));
      assert.ok(draw.kind === 'token');
      drawn.push(draw.token);
    }
    const careless = open();
    assert.equal(careless.begin(beginOf(sampling)), null);
    const draw = careless.draw(request, 2, logitsAfter(drawn.slice(0, 2)));
    assert.ok(draw.kind === 'token' && draw.token !== drawn[2]);
  });
});

test('a grammar that does not allow what was drawn cannot be gone on with', () => {
  withBench(({ open }) => {
    const tail = open();
    const sampling = { ...defaultSampling, grammar: 'root ::= "yes"' };
    assert.equal(tail.begin(beginOf(sampling, { drawn: [tokenId(500)] })), 'grammar-invalid');
    tail.end(request);
    assert.equal(tail.begin(beginOf(sampling)), null);
  });
});
