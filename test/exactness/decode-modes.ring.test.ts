/**
 * Seeded text from whole rings: agents and stages in processes of their own, mutual TLS between the agents.
 *
 * - `decode: exact`: the text is the uncut model's own in the shape class of two and more rows, whatever the cut, the chunks
 *   of the prompt, the number of agents, or who runs beside it.
 * - `decode: fast`: undisturbed it is the uncut model's own, fed the same rows. Beside others it is the same, or departs at
 *   a step at which logits within `fastBound` of the undisturbed ones draw the other token; the test shows that they do.
 * - `wire: f16` rounds what goes from stage to stage, so a text may depend on the cut; in `exact` on nothing else.
 *
 * `npm test` tries some of the rings; with `P4_MODES=all` (`npm run prove:modes`) a run tries all.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test, type TestContext } from 'node:test';

import { defaultSampling } from '../../protocol/sampling.ts';
import type { DecodeMode, LayerRange, WireType } from '../../protocol/plan.ts';
import { LocalRings, type Answer, type LoadedRing, type Question } from '../fixture/local-rings.ts';
import { fastBounds } from './fast-bound.ts';
import { besideNeighbours } from './neighbours.ts';
import { rangeOf } from './probability-comparison.ts';
import { greedyToken, record } from './recording.ts';
import { chunkedScript } from './script.ts';
import { Drawing, findFlip, relativeDifference, stepLogits, type Flip, type Shape } from './seeded-text.ts';
import { contextShape, stories } from './subjects.ts';
import { UncutModel } from './uncut-model.ts';

/** The stories model's weights are F16. */
const fastBound = fastBounds.F16;

const cuts: Readonly<Record<1 | 2 | 3 | 4, readonly LayerRange[]>> = {
  1: [{ first: 0, last: 7 }],
  2: [
    { first: 0, last: 2 },
    { first: 3, last: 7 },
  ],
  3: [
    { first: 0, last: 1 },
    { first: 2, last: 2 },
    { first: 3, last: 7 },
  ],
  4: [
    { first: 0, last: 1 },
    { first: 2, last: 3 },
    { first: 4, last: 5 },
    { first: 6, last: 7 },
  ],
};

interface Case {
  readonly stages: 1 | 2 | 3 | 4;
  readonly agents: 1 | 2;
  readonly wire?: WireType;
}

/** In the short form, the first of them and the last. */
const tried = (all: readonly Case[]): readonly Case[] =>
  process.env['P4_MODES'] === 'all' ? all : all.filter((_, index) => index === 0 || index === all.length - 1);

interface SeededQuestion extends Question {
  readonly prompt: readonly number[];
  readonly sampling: { readonly temperature: number; readonly seed: number };
}

const shapes = ['lone', 'paired', 'moved'] as const;

describe('seeded text at temperature 0.8', () => {
  let rings: LocalRings;
  let uncut: UncutModel;
  let drawing: Drawing;
  let flip: Flip;
  let questions: readonly SeededQuestion[];

  before(async () => {
    uncut = new UncutModel({ path: stories.path, ...contextShape, observes: false });
    drawing = new Drawing(uncut);
    const opening = Array.from(
      uncut.vocabulary.tokenize('Once upon a time', { addSpecial: true, parseSpecial: false }),
    );
    const story = record(uncut, chunkedScript(opening, 63, 200)).decodes.flatMap(({ logits }) =>
      logits.map(greedyToken),
    );
    const text = [...opening, ...story];
    flip = findFlip(uncut, text, 4000);
    const ask = (prompt: readonly number[], seed: number): SeededQuestion => ({
      prompt,
      sampling: { temperature: 0.8, seed },
      maxTokens: 64,
    });
    // One chunk; a chunk and a lone row; three chunks; and the prompt whose first token tells the shape classes apart.
    questions = [
      ask(opening, 11),
      ask(text.slice(0, 64), 22),
      ask(text.slice(0, 150), 33),
      ask(flip.prompt, flip.seed),
    ];
    rings = await LocalRings.start(2);
  });
  after(async () => {
    await rings.stop();
    drawing.free();
    uncut.close();
  });

  async function withRing<Result>(
    mode: DecodeMode,
    { stages, agents, wire = 'f32' }: Case,
    use: (ring: LoadedRing) => Promise<Result>,
  ) {
    const ring = await rings.load({
      ring: `${mode}-${wire}-${String(stages)}-${String(agents)}`,
      model: stories.path,
      cut: cuts[stages],
      agents,
      contextTokens: 256,
      sessions: 4,
      decode: mode,
      wire,
    });
    const result = await use(ring);
    await ring.unload();
    return result;
  }

  async function askInTurn(ring: LoadedRing): Promise<Answer[]> {
    const answers: Answer[] = [];
    for (const question of questions) answers.push(await ring.ask(question));
    return answers;
  }

  /** The questions of one round go at once, beside a session of random prompts. */
  const askTogether = (ring: LoadedRing, seed: number): Promise<Answer[]> =>
    besideNeighbours(ring, { count: 1, seed }, async () => {
      const [first, ...others] = questions;
      // Four sessions: the neighbour has one.
      const together = await Promise.all(others.map((question) => ring.ask(question)));
      return [await ring.ask(first ?? others[0] ?? { prompt: [] }), ...together];
    });

  /** The uncut model's own draw at each step of a text, in a shape class. */
  function drawsOf(question: SeededQuestion, tokens: readonly number[], shape: Shape): number[] {
    return stepLogits(uncut, { prompt: question.prompt, tokens }, shape).map((logits, step) =>
      drawing.draw(logits, question.sampling, step),
    );
  }

  test('decode: exact gives the same text whatever the cut, the chunks, the agents and the neighbours', async (t) => {
    const cases = tried([
      { stages: 3, agents: 1 },
      { stages: 1, agents: 1 },
      { stages: 2, agents: 2 },
      { stages: 4, agents: 1 },
      { stages: 4, agents: 2 },
    ]);
    let expected: (readonly number[])[] | null = null;
    let texts = 0;
    for (const [index, ring] of cases.entries()) {
      const { alone, beside } = await withRing('exact', ring, async (loaded) => ({
        alone: await askInTurn(loaded),
        beside: await askTogether(loaded, index),
      }));
      expected ??= alone.map(({ tokens }) => tokens);
      for (const answers of [alone, beside]) {
        assert.deepEqual(
          answers.map(({ tokens }) => tokens),
          expected,
          JSON.stringify(ring),
        );
        texts += answers.length;
      }
      assertOtherShapes(t, { ring, alone, beside });
    }
    (expected ?? []).forEach((tokens, index) => {
      const question = questions[index];
      assert.ok(question !== undefined && tokens.length === 64);
      assert.deepEqual(drawsOf(question, tokens, 'paired'), tokens, "it is the uncut model's text");
    });
    // Where the classes differ, this is the one: a lone row was not run as one.
    assert.equal(expected?.at(-1)?.[0], flip.tokens.paired);
    assert.notEqual(flip.tokens.paired, flip.tokens.lone);
    t.diagnostic(`${String(texts)} texts of 64 tokens over ${String(cases.length)} rings: all the same`);
  });

  test('with wire: f16, decode: exact gives one text for one cut, and hops have half the bytes', async (t) => {
    let expected: (readonly number[])[] | null = null;
    for (const agents of [1, 2] as const) {
      const ring: Case = { stages: 3, agents, wire: 'f16' };
      const { alone, beside, linkBytes } = await withRing('exact', ring, async (loaded) => ({
        alone: await askInTurn(loaded),
        linkBytes: await hiddenBytes(loaded),
        beside: await askTogether(loaded, 20 + agents),
      }));
      expected ??= alone.map(({ tokens }) => tokens);
      for (const answers of [alone, beside]) {
        assert.deepEqual(
          answers.map(({ tokens }) => tokens),
          expected,
          JSON.stringify(ring),
        );
      }
      assertOtherShapes(t, { ring, alone, beside });
      if (agents === 1) continue;
      const leastBytes = rowsOf(alone) * uncut.width * Uint16Array.BYTES_PER_ELEMENT;
      assert.ok(linkBytes > leastBytes && linkBytes < leastBytes * 1.4, `${String(linkBytes)} bytes`);
    }
  });

  test('decode: fast gives the same text, or departs where the decision lies within the bound', async (t) => {
    const cases = tried([
      { stages: 1, agents: 1 },
      { stages: 2, agents: 1 },
      { stages: 4, agents: 2 },
      { stages: 3, agents: 2 },
    ]);
    let expected: (readonly number[])[] | null = null;
    let compared = 0;
    const departures: string[] = [];
    for (const [index, ring] of cases.entries()) {
      const { alone, beside } = await withRing('fast', ring, async (loaded) => ({
        alone: await askInTurn(loaded),
        beside: [...(await askTogether(loaded, index)), ...(await askTogether(loaded, 10 + index))],
      }));
      expected ??= alone.map(({ tokens }) => tokens);
      assert.deepEqual(
        alone.map(({ tokens }) => tokens),
        expected,
        JSON.stringify(ring),
      );
      for (const [at, { tokens }] of beside.entries()) {
        compared += 1;
        const which = at % questions.length;
        const departure = departureOf(which, expected[which] ?? [], tokens);
        if (departure !== null) departures.push(`${JSON.stringify(ring)}, question ${String(which)}: ${departure}`);
      }
    }
    const worst = { paired: 0, moved: 0 };
    (expected ?? []).forEach((tokens, index) => {
      const question = questions[index];
      assert.ok(question !== undefined && tokens.length === 64);
      assert.deepEqual(drawsOf(question, tokens, 'lone'), tokens, "undisturbed, it is the uncut model's text");
      for (const shape of ['paired', 'moved'] as const) {
        worst[shape] = Math.max(worst[shape], shapeDifference(question, tokens, shape));
      }
    });
    assert.equal(expected?.at(-1)?.[0], flip.tokens.lone);
    for (const [shape, difference] of Object.entries(worst)) {
      assert.ok(difference > 0 && difference <= fastBound, `${shape}: ${String(difference)}`);
    }
    t.diagnostic(
      `${String(compared)} texts beside others: ${String(departures.length)} depart, each at a decision within ` +
        `${String(fastBound)} of the logits' range. Greatest differences of the uncut model from lone rows, of that range: ` +
        `in pairs ${worst.paired.toExponential(2)}, in other cells ${worst.moved.toExponential(2)}`,
    );
    for (const departure of departures) t.diagnostic(departure);
  });

  /** Shows that a departure is one that rounding explains. @returns null when the texts are the same */
  function departureOf(which: number, expected: readonly number[], tokens: readonly number[]): string | null {
    assert.equal(tokens.length, expected.length);
    const step = tokens.findIndex((token, index) => token !== expected[index]);
    if (step === -1) return null;
    const question = questions[which];
    assert.ok(question !== undefined);
    const until = { prompt: question.prompt, tokens: expected.slice(0, step + 1) };
    const [lone, ...others] = shapes.map((shape) => stepLogits(uncut, until, shape)[step]);
    assert.ok(lone !== undefined);
    const draw = (logits: Float32Array): number => drawing.draw(logits, question.sampling, step);
    assert.equal(draw(lone), expected[step]);
    const within = drawing.tokensWithin(lone, fastBound * rangeOf(lone), draw);
    const found = tokens[step] ?? -1;
    assert.ok(within.has(found), `step ${String(step)}: ${String(found)} is none of ${[...within].join(', ')}`);
    const same = others.map((logits, index) => (draw(logits ?? lone) === found ? shapes[index + 1] : undefined));
    const by = same.filter((shape) => shape !== undefined).join(' and ');
    const flips = by === '' ? 'the draw lies at an edge' : `the uncut model draws it when fed ${by}`;
    return `step ${String(step)}, token ${String(expected[step])} or ${String(found)}: ${flips}`;
  }

  const shapeDifference = (question: SeededQuestion, tokens: readonly number[], shape: Shape): number => {
    const text = { prompt: question.prompt, tokens };
    const other = stepLogits(uncut, text, shape);
    const lone = stepLogits(uncut, text, 'lone');
    return Math.max(...lone.map((logits, step) => relativeDifference(logits, other[step] ?? new Float32Array())));
  };

  test('a token that rounding does not explain is no decision within the bound', () => {
    const [logits] = stepLogits(uncut, { prompt: flip.prompt, tokens: [0] }, 'lone');
    assert.ok(logits !== undefined);
    const drawn = (seed: number) => (moved: Float32Array) => drawing.draw(moved, { ...defaultSampling, seed }, 0);
    const tokens = Array.from({ length: 40 }, (_, seed) => drawn(seed)(logits));
    const within = tokens.map((_, seed) => drawing.tokensWithin(logits, fastBound * rangeOf(logits), drawn(seed)));
    tokens.forEach((token, seed) => {
      assert.ok(within[seed]?.has(token));
    });
    // What another seed draws from the same logits is a token that this step might have had, but not by rounding.
    const next = (seed: number): number => tokens[(seed + 1) % tokens.length] ?? -1;
    const differing = tokens.filter((token, seed) => token !== next(seed)).length;
    const foreign = tokens.filter((_, seed) => within[seed]?.has(next(seed)) === false).length;
    assert.ok(differing >= 10 && foreign > differing / 2, `${String(foreign)} of ${String(differing)} are told apart`);
    assert.ok(drawing.tokensWithin(logits, fastBound * rangeOf(logits), drawn(flip.seed)).has(flip.tokens.paired));
  });

  test('two agents are two processes, and what goes from one to the other is counted', async (t) => {
    await withRing('fast', { stages: 4, agents: 2 }, async (ring) => {
      const answers = await askInTurn(ring);
      const statuses = await ring.status();
      const pids = statuses.map(({ agent }) => agent?.pid);
      assert.equal(new Set([...pids, process.pid]).size, 3);
      assert.deepEqual(
        pids,
        rings.agents.map(({ pid }) => pid),
      );
      const nodes = statuses.flatMap(({ rings: held }) => held.flatMap((one) => one.nodes));
      assert.equal(new Set([...nodes.map(({ pid }) => pid), ...pids]).size, 6);
      const links = statuses.flatMap(({ rings: held }) => held.flatMap((one) => one.links));
      assert.deepEqual(
        links.map(({ source, destination, peer }) => [source, destination, peer]),
        [
          [1, 2, 'local-2'],
          [3, 0, 'local'],
        ],
      );
      const rows = rowsOf(answers);
      const [hidden, tokens] = links.map(({ bytes }) => Number(bytes));
      const leastBytes = rows * uncut.width * Float32Array.BYTES_PER_ELEMENT;
      assert.ok(hidden !== undefined && hidden > leastBytes && hidden < leastBytes * 1.2, `${String(hidden)} bytes`);
      assert.ok(tokens !== undefined && tokens > 0 && tokens < leastBytes / 4, `${String(tokens)} bytes`);
      t.diagnostic(
        `agents ${pids.join(' and ')}; ${String(rows)} rows: ${String(hidden)} bytes of hidden state and ` +
          `${String(tokens)} bytes of tokens between them`,
      );
    });
  });
});

/** Rows that every stage ran. */
const rowsOf = (answers: readonly Answer[]): number =>
  answers.reduce((sum, { result }) => sum + result.end.promptTokens + result.emitted - 1, 0);

/** Bytes of all frames with hidden state between agents so far. */
async function hiddenBytes(ring: LoadedRing): Promise<number> {
  const links = (await ring.status()).flatMap(({ rings }) => rings.flatMap((one) => one.links));
  return links.filter(({ destination }) => destination !== 0).reduce((sum, { bytes }) => sum + Number(bytes), 0);
}

interface Rounds {
  readonly ring: Case;
  readonly alone: readonly Answer[];
  readonly beside: readonly Answer[];
}

/** The two rounds ran in other shapes: alone every step had its dummy row, beside others few had. With a stage for each text they go by themselves, too. */
function assertOtherShapes(t: TestContext, { ring, alone, beside }: Rounds): void {
  const padding = (answers: readonly Answer[]): number =>
    answers.reduce((sum, { result }) => sum + (result.stages[0]?.padding ?? 0), 0);
  assert.ok(padding(alone) >= 63 * alone.length, `${String(padding(alone))} dummy rows alone`);
  const most = ring.stages <= 2 ? padding(alone) - 1 : padding(alone);
  assert.ok(padding(beside) <= most, `${String(padding(beside))} dummy rows beside others`);
  t.diagnostic(
    `${JSON.stringify(ring)}: dummy rows ${String(padding(alone))} alone, ${String(padding(beside))} beside`,
  );
}
