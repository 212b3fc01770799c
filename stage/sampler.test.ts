import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import { tokenId } from '../protocol/ids.ts';
import { defaultSampling, type Sampling } from '../protocol/sampling.ts';
import { Candidates } from './candidates.ts';
import { drawSeed } from './draw-seed.ts';
import type { Engine } from './engine.ts';
import { argmax, decodeRows, sequenceRows, withEngine } from './engine-fixture.ts';
import { openSampler, type Sampler } from './sampler.ts';
import { soundGrammars } from '../protocol/sound-grammars.ts';

const prompt = [0, 379, 395, 264, 364];

interface Bench {
  readonly engine: Engine;
  /** Samplers made with it are closed with it. */
  readonly open: (sampling: Partial<Sampling>) => Sampler;
  /** The text of tokens. */
  readonly text: (tokens: readonly number[]) => string;
}

function withBench(use: (bench: Bench) => void): void {
  withEngine({}, (engine) => {
    const candidates = new Candidates(engine.vocabulary.size);
    const opened: Sampler[] = [];
    const { bytes, offsets } = engine.vocabulary.pieces();
    try {
      use({
        engine,
        open: (sampling) => {
          const sampler = openSampler(engine.vocabulary, candidates, { ...defaultSampling, ...sampling });
          opened.push(sampler);
          return sampler;
        },
        text: (tokens) =>
          Buffer.concat(tokens.map((token) => bytes.subarray(offsets[token], offsets[token + 1]))).toString(),
      });
    } finally {
      for (const sampler of opened) sampler.close();
      candidates.free();
    }
  });
}

interface Span {
  readonly count: number;
  readonly already?: readonly number[];
}

/** Draws up to `count` tokens after the prompt and `already`; ends at an end-of-generation token or a dead end. */
function generate(engine: Engine, sampler: Sampler, { count, already = [] }: Span): number[] {
  engine.removeSequence(0);
  let rows = sequenceRows([...prompt, ...already]);
  const drawn: number[] = [];
  while (drawn.length < count) {
    const outcome = sampler.sample(lastOf(decodeRows(engine, rows)), already.length + drawn.length);
    if (outcome.kind === 'grammar-dead-end') return drawn;
    drawn.push(outcome.token);
    if (engine.vocabulary.isEndOfGeneration(outcome.token)) return drawn;
    rows = sequenceRows([outcome.token], 0, engine.nextPosition(0));
  }
  return drawn;
}

const lastOf = (rows: readonly Float32Array[]): Float32Array => rows.at(-1) ?? new Float32Array();
const flat = (engine: Engine): Float32Array => new Float32Array(engine.vocabulary.size);

test('temperature 0 takes the likeliest token', () => {
  withBench(({ engine, open }) => {
    const logits = lastOf(decodeRows(engine, sequenceRows(prompt)));
    assert.deepEqual(open({ temperature: 0 }).sample(logits, 0), { kind: 'token', token: argmax(logits) });
  });
});

test('a seed gives the same text again, and another seed another', () => {
  withBench(({ engine, open }) => {
    const options = { temperature: 1.2, topK: 0, topP: 1, minP: 0 };
    const text = generate(engine, open({ ...options, seed: 7 }), { count: 24 });
    assert.deepEqual(generate(engine, open({ ...options, seed: 7 }), { count: 24 }), text);
    assert.notDeepEqual(generate(engine, open({ ...options, seed: 8 }), { count: 24 }), text);
  });
});

test('a sampler made anew goes on as the first would have (X3)', () => {
  withBench(({ engine, open }) => {
    const options = { seed: 42, temperature: 1, repeatPenalty: 1.3, frequencyPenalty: 0.2, grammar: 'root ::= [^x]*' };
    const start = (): Sampler => {
      const sampler = open(options);
      sampler.acceptPrompt(prompt);
      return sampler;
    };
    const whole = generate(engine, start(), { count: 20 });
    const again = start();
    again.acceptEmitted(whole.slice(0, 9));
    assert.equal(again.emitted, 9);
    assert.deepEqual(generate(engine, again, { count: 11, already: whole.slice(0, 9) }), whole.slice(9));
  });
});

test('the draw of a step does not depend on how many were drawn before', () => {
  withBench(({ engine, open }) => {
    const options = { temperature: 1, topK: 0, topP: 1, minP: 0, seed: 5 };
    const logits = flat(engine);
    const inOrder = open(options);
    const draws = Array.from({ length: 20 }, (_, step) => inOrder.sample(logits, step));
    assert.deepEqual(open(options).sample(logits, 13), draws[13]);
    assert.ok(new Set(draws.map((draw) => JSON.stringify(draw))).size > 15);
  });
});

test('draws over a flat distribution are spread evenly', () => {
  const buckets = new Array<number>(16).fill(0);
  for (let step = 0; step < 8000; step += 1) {
    const bucket = Math.floor((drawSeed(1, step, 0) / 2 ** 32) * 16);
    buckets[bucket] = (buckets[bucket] ?? 0) + 1;
  }
  for (const count of buckets) assert.ok(count > 400 && count < 600, buckets.join(' '));
  assert.notEqual(drawSeed(1, 0, 0), drawSeed(1, 0, 1));
  assert.notEqual(drawSeed(1, 0, 0), drawSeed(2, 0, 0));
});

test('penalties know the prompt and what was drawn; a bias forces and forbids', () => {
  withBench(({ engine, open }) => {
    const logits = flat(engine);
    logits[100] = 3;
    logits[200] = 2.9;
    const penalised = open({ temperature: 0, repeatPenalty: 2, repeatLastTokens: 8 });
    penalised.acceptPrompt([100]);
    assert.deepEqual(penalised.sample(logits, 0), { kind: 'token', token: 200 });
    assert.deepEqual(penalised.sample(logits, 1), { kind: 'token', token: 100 });
    assert.equal(logits[100], 3);
    const biased = open({
      temperature: 0,
      logitBias: [
        [tokenId(100), -100],
        [tokenId(300), 50],
      ],
    });
    assert.deepEqual(biased.sample(logits, 0), { kind: 'token', token: 300 });
  });
});

for (const [name, grammar] of Object.entries(soundGrammars)) {
  test(`llama.cpp reads the grammar ${name} and draws by it`, () => {
    withBench(({ engine, open }) => {
      const sampler = open({ grammar, seed: 3 });
      assert.ok(generate(engine, sampler, { count: 6 }).length > 0);
    });
  });
}

test('a grammar confines the text, greedy and drawn, and lets it end where it may', () => {
  withBench(({ engine, open, text }) => {
    for (const temperature of [0, 1.5]) {
      const tokens = generate(engine, open({ temperature, grammar: 'root ::= ("fox" | "owl") " " [0-9]{3} "."' }), {
        count: 40,
      });
      const end = tokens.at(-1) ?? -1;
      assert.ok(engine.vocabulary.isEndOfGeneration(end), text(tokens));
      assert.match(text(tokens.slice(0, -1)), /^(fox|owl) [0-9]{3}\.$/);
    }
  });
});

test('a dead end is an answer: nothing is accepted, and nothing breaks', () => {
  withBench(({ engine, open }) => {
    // The class holds no character, so nothing can follow.
    const sampler = open({ grammar: 'root ::= "a" [z-a]' });
    const logits = flat(engine);
    const first = sampler.sample(logits, 0);
    assert.equal(first.kind, 'token');
    assert.deepEqual(sampler.sample(logits, 1), { kind: 'grammar-dead-end' });
    assert.deepEqual(sampler.sample(logits, 1), { kind: 'grammar-dead-end' });
    assert.equal(sampler.emitted, 1);
  });
});

test('a token that the grammar does not allow is refused, not accepted', () => {
  withBench(({ engine, open }) => {
    const sampler = open({ grammar: 'root ::= "yes"' });
    for (const token of [0, 1, 300, 1023]) {
      assert.throws(() => {
        sampler.acceptEmitted([token]);
      }, isCode('SAMPLER_GRAMMAR'));
    }
    assert.throws(() => {
      sampler.acceptEmitted([engine.vocabulary.size]);
    }, isCode('TOKEN_OUT_OF_RANGE'));
    assert.equal(sampler.emitted, 0);
    assert.equal(sampler.sample(flat(engine), 0).kind, 'token');
  });
});

test('options out of their bounds are refused by name', () => {
  withBench(({ open }) => {
    const wrong: readonly (readonly [Partial<Sampling>, ErrorCode])[] = [
      [{ temperature: -1 }, 'SAMPLING_INVALID'],
      [{ temperature: NaN }, 'SAMPLING_INVALID'],
      [{ temperature: 1e-9 }, 'SAMPLING_INVALID'],
      [{ topK: 1.5 }, 'SAMPLING_INVALID'],
      [{ topP: 1.1 }, 'SAMPLING_INVALID'],
      [{ minP: -0.1 }, 'SAMPLING_INVALID'],
      [{ repeatPenalty: 0 }, 'SAMPLING_INVALID'],
      [{ repeatLastTokens: 2 ** 31 }, 'SAMPLING_INVALID'],
      [{ presencePenalty: Infinity }, 'SAMPLING_INVALID'],
      [{ seed: 2 ** 32 }, 'SAMPLING_INVALID'],
      [{ seed: -1 }, 'SAMPLING_INVALID'],
      [{ logitBias: [[tokenId(1024), 1]] }, 'TOKEN_OUT_OF_RANGE'],
      [{ logitBias: [[tokenId(3), -Infinity]] }, 'SAMPLING_INVALID'],
      [{ logitBias: [[tokenId(3), NaN]] }, 'SAMPLING_INVALID'],
      [{ logitBias: new Array(1025).fill([tokenId(3), 1]) }, 'SAMPLING_INVALID'],
      [{ grammar: 'root ::= word' }, 'SAMPLER_GRAMMAR'],
    ];
    for (const [sampling, code] of wrong) assert.throws(() => open(sampling), isCode(code), JSON.stringify(sampling));
  });
});

test('logits that are not numbers end in an error, not in a token', () => {
  withBench(({ engine, open }) => {
    for (const bad of [NaN, Infinity]) {
      const logits = flat(engine);
      logits[17] = bad;
      assert.throws(() => open({}).sample(logits, 0), isCode('STAGE_DECODE'));
    }
    const logits = flat(engine).fill(-Infinity);
    logits[5] = 0;
    assert.deepEqual(open({}).sample(logits, 0), { kind: 'token', token: 5 });
  });
});

test('samplers of one thread share their candidates without touching each other', () => {
  withBench(({ engine, open }) => {
    const one = open({ temperature: 0, grammar: 'root ::= "ab"' });
    const other = open({ temperature: 0 });
    const logits = flat(engine);
    logits[900] = 1;
    assert.notDeepEqual(one.sample(logits, 0), { kind: 'token', token: 900 });
    assert.deepEqual(other.sample(logits, 0), { kind: 'token', token: 900 });
  });
});

function isCode(code: ErrorCode): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof P4Error, String(error));
    assert.equal(error.code, code);
    return true;
  };
}
