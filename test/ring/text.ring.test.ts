/** What a reader gets: whole characters, no part of a stop string, what the grammar allows; and where a text ends. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { writeRandomModel, type RandomModelShape } from '../../model/random-model.ts';
import { present } from '../../protocol/assert.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import { agreedRows, type Answer, type LoadedRing } from '../fixture/loaded-ring.ts';

const stages = [
  ['local', '0-3'],
  ['local', '4-7'],
] as const;
const prompt = 'Once upon a time';
const qwen = join(import.meta.dirname, '../../../test/models/qwen3-dense.gguf');
const chat = '<|user|>\nTell me a story about a fox.<|end|>\n<|assistant|>\n';

let agents: LocalAgents;
let ring: LoadedRing;
/** Greedy, undisturbed. */
let whole: Answer;

before(async () => {
  agents = await LocalAgents.start();
  ring = await agents.load({ ring: 'text', stages, decode: 'exact' });
  whole = await ring.askAlone({ prompt, maxTokens: 40 });
});
after(() => agents.stop());

describe('a stop string', () => {
  test('ends the text before it, wherever its tokens are cut, and no part of it is ever given', async () => {
    const { text } = whole;
    for (const [at, length] of [
      [9, 1],
      [17, 2],
      [30, 5],
      [41, 12],
      [55, 20],
      [0, 3],
    ] as const) {
      const stop = text.slice(at, at + length);
      const expected = text.slice(0, text.indexOf(stop));
      const answer = await ring.askAlone({ prompt, maxTokens: 40, stop: ['never said', stop] });
      assert.equal(answer.end.reason, 'stop-string');
      assert.equal(answer.text, expected, `stopped at ${JSON.stringify(stop)}`);
      assert.deepEqual(answer.tokens, whole.tokens.slice(0, answer.tokens.length));
    }
  });

  test('that only seemed to begin is given after all, within the text and at its end', async () => {
    const { text } = whole;
    const [middle, last] = [`${text.slice(30, 36)}§`, `${text.slice(-5)}§`];
    const answer = await ring.askAlone({ prompt, maxTokens: 40, stop: [middle, last] });
    assert.equal(answer.text, text);
    assert.equal(answer.end.reason, 'length');
    assert.ok(answer.end.text.length >= 5, 'the end was held back until nothing more came');
    assert.notDeepEqual(answer.parts.slice(0, -1), whole.parts.slice(0, -1), 'the middle was held back for a while');
  });

  test('holds for the command too', async () => {
    const stop = whole.text.slice(30, 36);
    const infer = await agents.home.run(['infer', ring.plan.path, prompt, '--temperature', '0', '--stop', stop]);
    assert.deepEqual([infer.exit, infer.out], [0, whole.text.slice(0, whole.text.indexOf(stop))]);
  });
});

describe('a character', () => {
  const forced = '🦊é…ß漢字';
  const grammar = `root ::= "${forced}"`;

  test('whose bytes are several tokens is given when it is whole', async () => {
    const answer = await ring.askAlone({ prompt, maxTokens: 60, sampling: { grammar } });
    assert.equal(answer.text, forced);
    assert.equal(answer.end.reason, 'end-of-generation');
    assert.ok(answer.tokens.length > Array.from(forced).length + 5, 'its bytes came apart');
    for (const part of answer.parts) assert.ok(Array.from(part).every((character) => forced.includes(character)));
    assert.ok(answer.parts.filter((part) => part === '').length > 5, 'nothing was given while one was incomplete');
  });

  test('that is cut off by the maximum of tokens is marked as such, at the end alone', async () => {
    const answer = await ring.askAlone({ prompt, maxTokens: 2, sampling: { grammar } });
    assert.deepEqual(answer.parts, ['', '', '\ufffd']);
  });

  test('of a prompt is any that there is', async () => {
    const emoji = '🦊🐻 é… 漢字: Once upon a time';
    const answer = await ring.askAlone({ prompt: emoji, maxTokens: 24 });
    assert.ok(answer.end.promptTokens > 20);
    assert.ok(!answer.text.includes('\ufffd'));
    const infer = await agents.home.run(['infer', ring.plan.path, '--temperature', '0', '--max-tokens', '24'], emoji);
    assert.deepEqual([infer.exit, infer.out], [0, answer.text]);
  });
});

describe('a grammar', () => {
  test('constrains what is said', async () => {
    const sampling = { grammar: 'root ::= ("yes" | "no") ", " [0-9] [0-9]', temperature: 1 };
    for (let seed = 0; seed < 4; seed += 1) {
      const answer = await ring.askAlone({ prompt, maxTokens: 30, sampling: { ...sampling, seed } });
      assert.match(answer.text, /^(yes|no), \d\d$/);
      assert.equal(answer.end.reason, 'end-of-generation');
    }
  });

  test('that is none is refused with one error, and its session goes on as if it had never come', async () => {
    const held = await ring.open();
    for (const bad of ['root ::= "open', 'start ::= "x"', 'root ::= root "x"', 'root ::= missing']) {
      await assert.rejects(ring.ask(held.session, { prompt, sampling: { grammar: bad } }), { code: 'SAMPLER_GRAMMAR' });
    }
    const good = await ring.ask(held.session, { prompt, maxTokens: 40 });
    assert.equal(good.text, whole.text);
    assert.equal(agreedRows(good.settlement).reused, 0);
    await held.letGo();
    await ring.untilEmpty();
  });

  test('that is none ends the command with one error', async () => {
    const { exit, out, err } = await agents.home.run(['infer', ring.plan.path, prompt, '--grammar', 'root ::= (']);
    assert.deepEqual([exit, out], [2, '']);
    assert.equal(err.match(/^[A-Z_]+: /gm)?.length, 1, err);
    assert.match(err, /^SAMPLER_GRAMMAR: /);
  });
});

describe('a logit bias', () => {
  test('makes a token certain, or keeps it out', async () => {
    const [first] = whole.tokens;
    const always = await ring.askAlone({ prompt, maxTokens: 5, sampling: { logitBias: [[300 as never, 1000]] } });
    assert.deepEqual(always.tokens, [300, 300, 300, 300, 300]);
    const args = ['--temperature', '0', '--max-tokens', '40', '--json', '--logit-bias', `${String(first)}=-inf`];
    const never = await agents.home.run(['infer', ring.plan.path, prompt, ...args]);
    assert.equal(never.exit, 0, never.err);
    assert.ok(!tokensOf(never.out).includes(present(first ?? null, 'the text has a first token')));
    assert.equal(tokensOf(never.out).length, 40);
  });
});

describe('a text ends', () => {
  test('with the model’s own end, unless that is to be ignored', async () => {
    const ended = await ring.askAlone({ prompt: chat, maxTokens: 900 });
    assert.equal(ended.end.reason, 'end-of-generation');
    const count = ended.tokens.length;
    const args = ['--temperature', '0', '--max-tokens', String(count + 5), '--ignore-end', '--json'];
    const { exit, out } = await agents.home.run(['infer', ring.plan.path, chat, ...args]);
    assert.equal(exit, 0);
    const tokens = tokensOf(out);
    assert.equal(tokens.length, count + 5);
    assert.deepEqual(tokens.slice(0, count), ended.tokens);
    assert.match(out, /"reason":"length"/);
  });

  test('at its maximum of tokens', async () => {
    for (const maxTokens of [1, 2, 17]) {
      const { end, tokens, settlement } = await ring.askAlone({ prompt, maxTokens });
      assert.deepEqual([end.reason, end.completionTokens, tokens.length], ['length', maxTokens, maxTokens]);
      assert.equal(agreedRows(settlement).decoded, maxTokens - 1, 'the last token is not fed again');
    }
  });

  test('when the context is full, with every token that fits', async () => {
    const small = await agents.load({ ring: 'small', stages, context: 64 });
    const prompted = (count: number): number[] => Array.from({ length: count }, () => 300);
    for (const count of [1, 60, 63, 64]) {
      const { end, tokens } = await small.askAlone({ prompt: prompted(count), maxTokens: 1000, ignoreEnd: true });
      // The row of the last token that fits draws one more.
      assert.deepEqual([end.reason, tokens.length], ['context-full', 64 - count + 1]);
    }
    const held = await small.open();
    await assert.rejects(small.submit(held.session, { prompt: prompted(65) }), { code: 'PROMPT_TOO_LONG' });
    await small.ask(held.session, { prompt: prompted(64), maxTokens: 1000, ignoreEnd: true });
    await assert.rejects(small.submit(held.session, { prompt: [300] }), { code: 'PROMPT_TOO_LONG' });
    await held.letGo();
    const { exit, err } = await agents.home.run(['infer', small.plan.path, prompt, '--ignore-end']);
    assert.equal(exit, 0);
    assert.match(err, /context is full/);
    await small.untilEmpty();
  });
});

describe('token ids', () => {
  const halves = [
    ['local', '0-5'],
    ['local', '6-11'],
  ] as const;
  const args = ['--temperature', '0', '--max-tokens', '12', '--json'];

  test('are a prompt too, for a model whose text means nothing', async () => {
    const random = await agents.load({ ring: 'random', model: qwen, stages: halves, context: 128 });
    const { exit, out, err } = await agents.home.run(['infer', random.plan.path, '--tokens', '1,5,9', ...args]);
    assert.equal(exit, 0, err);
    assert.equal(tokensOf(out).length, 12);
    assert.deepEqual(tokensOf(out), (await random.askAlone({ prompt: [1, 5, 9], maxTokens: 12 })).tokens);
    const outside = await agents.home.run(['infer', random.plan.path, '--tokens', '1,128', ...args]);
    assert.equal(outside.exit, 2);
    assert.match(outside.err, /TOKEN_OUT_OF_RANGE/);
    await random.untilEmpty();
  });

  test('are all that a model without a tokenizer takes and gives', async () => {
    const model = join(agents.home.folder, 'bare.gguf');
    await writeRandomModel(model, bareShape);
    const bare = await agents.load({ ring: 'bare', model, stages: halves, context: 128 });
    const { exit, out, err } = await agents.home.run(['infer', bare.plan.path, '--tokens', '1,5,9', ...args]);
    assert.equal(exit, 0, err);
    assert.equal(tokensOf(out).length, 12);
    assert.equal(out.match(/"text":""/g)?.length, 13, 'neither a token nor the end has text');
    const text = await agents.home.run(['infer', bare.plan.path, 'Once']);
    assert.deepEqual([text.exit, text.out], [2, '']);
    assert.match(text.err, /^TOKENIZER_ABSENT: /);
    await bare.untilEmpty();
  });

  test('have no grammar: the tail refuses it, and the session goes on as if it had never come', async () => {
    const model = join(agents.home.folder, 'bare.gguf');
    const bare = await agents.load({ ring: 'bare', model, stages: halves, context: 128 });
    const held = await bare.open();
    const asked = { prompt: [1, 5, 9], maxTokens: 12 };
    const refused = await bare.ask(held.session, { ...asked, sampling: { grammar: 'root ::= "x"' } });
    assert.equal(refused.end.reason, 'refused');
    assert.match(refused.end.detail, /stage 1: grammar-invalid/);
    assert.deepEqual(refused.tokens, []);
    const good = await bare.ask(held.session, asked);
    assert.deepEqual(good.tokens, (await bare.askAlone(asked)).tokens);
    assert.equal(agreedRows(good.settlement).reused, 0);
    await held.letGo();
    const grammar = ['--tokens', '1', '--grammar', 'root ::= "x"'];
    const { exit, out, err } = await agents.home.run(['infer', bare.plan.path, ...grammar]);
    assert.deepEqual([exit, out], [2, '']);
    assert.match(err, /^REQUEST_REFUSED: /);
    await bare.untilEmpty();
  });
});

const bareShape: RandomModelShape = {
  ...{ layers: 12, hiddenWidth: 64, heads: 4, kvHeads: 2, feedForwardWidth: 128 },
  ...{ vocabularySize: 256, contextTokens: 256, weightType: 'F16', seed: 3 },
};

const tokensOf = (out: string): number[] =>
  out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly event: string; readonly token: number })
    .filter(({ event }) => event === 'token')
    .map(({ token }) => token);
