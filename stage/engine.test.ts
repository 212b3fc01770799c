import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';

import { benchModelShape, writeRandomModel } from '../model/random-model.ts';
import { P4Error } from '../protocol/errors.ts';
import type { Engine } from './engine.ts';
import {
  argmax,
  decodeRows,
  decodeTokens,
  floatsOf,
  logitsOf,
  maxDifference,
  openRing,
  sequenceRows,
  storiesLayers,
  storiesPath,
  withEngine,
  type Row,
} from './engine-fixture.ts';

const fixtureUrl = new URL('./engine-fixture.js', import.meta.url).href;
const opening = 'Once upon a time';
const tale =
  ', there lived a young boy. His name was Leo. One sunny day, Leo found a small seed on the path. "What will it be?" he asked.';

const promptOf = (engine: Engine): number[] =>
  Array.from(engine.vocabulary.tokenize(opening, { addSpecial: true, parseSpecial: false }));

/** Tokens of several little stories, each of its own. */
const prompts = [
  [0, 379, 395, 264, 364, 12],
  [0, 379, 395, 264],
  [0, 500, 501, 502, 503],
];

test('a greedy text is the one the model is known for', () => {
  withEngine({}, (engine) => {
    const pieces = engine.vocabulary.pieces();
    const bytes: Buffer[] = [];
    let rows = sequenceRows(promptOf(engine));
    while (Buffer.concat(bytes).length < tale.length) {
      const next = argmax(decodeRows(engine, rows).at(-1) ?? new Float32Array());
      bytes.push(Buffer.from(pieces.bytes.subarray(pieces.offsets[next], pieces.offsets[next + 1])));
      rows = sequenceRows([next], 0, engine.nextPosition(0));
    }
    assert.equal(Buffer.concat(bytes).toString().slice(0, tale.length), tale);
  });
});

test('rows of several sequences come back in the order in which they went in', () => {
  withEngine({ decode: 'exact' }, (engine) => {
    const alone = prompts.map((tokens, sequence) => {
      const logits = decodeRows(engine, sequenceRows(tokens, sequence));
      engine.removeSequence(sequence);
      return logits;
    });
    const mixed = [0, 1, 2, 3, 4, 5].flatMap((position) =>
      prompts.flatMap((tokens, sequence): Row[] => {
        const token = tokens[position];
        return token === undefined ? [] : [[token, position, sequence]];
      }),
    );
    const together = decodeRows(engine, mixed);
    const expected = mixed.map(([, position, sequence]) => alone[sequence]?.[position] ?? new Float32Array());
    assert.equal(maxDifference(together, expected), 0);
    assert.notEqual(maxDifference([...together].reverse(), expected), 0);
  });
});

test('with decode: exact a lone row has the bits it has beside neighbours, and its padding leaves no trace', () => {
  withEngine({ decode: 'exact' }, (engine) => {
    const [tokens = []] = prompts;
    const oneByOne = tokens.flatMap((token, position) => {
      const outcome = decodeTokens(engine, [[token, position, 0]]);
      assert.equal(outcome.kind === 'logits' && outcome.paddingRows, 1);
      assert.equal(engine.nextPosition(engine.reservedSequence), 0);
      return logitsOf(outcome);
    });
    assert.equal(engine.usedCells(), tokens.length);
    engine.removeSequence(0);

    const besideNeighbours = tokens.flatMap((token, position) => {
      const neighbours: Row[] = [1, 2, 3].map((sequence) => [token + sequence, position, sequence]);
      return decodeRows(engine, [...neighbours, [token, position, 0]]).slice(-1);
    });
    assert.equal(maxDifference(oneByOne, besideNeighbours), 0);
    engine.removeSequence(0);
    assert.equal(maxDifference(oneByOne, decodeRows(engine, sequenceRows(tokens))), 0);
  });
});

test('with decode: exact one wanted row among several has the bits it has when all are wanted', () => {
  withEngine({ decode: 'exact' }, (engine) => {
    const [tokens = []] = prompts;
    const all = decodeRows(engine, sequenceRows(tokens)).slice(-1);
    engine.removeSequence(0);
    const last = logitsOf(
      engine.decode({
        rows: tokens.length,
        input: { kind: 'tokens', tokens },
        positions: tokens.map((_, position) => position),
        sequences: tokens.map(() => 0),
        outputs: tokens.map((_, position) => (position === tokens.length - 1 ? 1 : 0)),
      }),
    );
    assert.equal(last.length, 1);
    assert.equal(maxDifference(last, all), 0);
  });
});

for (const cuts of [[4], [1], [7], [2, 5], [1, 2, 3, 4, 5, 6, 7]]) {
  test(`a ring cut before ${cuts.join(', ')} gives the logits of the whole model, bit for bit`, async () => {
    const ring = await openRing(cuts, { path: storiesPath });
    try {
      withEngine({}, (whole) => {
        const prompt = promptOf(whole);
        let batch: Row[] = [...sequenceRows(prompt), ...sequenceRows(prompt.slice(0, 3), 1)];
        for (let step = 0; step < 48; step += 1) {
          const expected = decodeRows(whole, batch);
          assert.equal(maxDifference(ring.decodeRows(batch), expected), 0, `step ${step}`);
          const next = argmax(expected.at(-1) ?? new Float32Array());
          // One row on some steps, two on others, and now and then a chunk.
          batch = sequenceRows([next], 0, whole.nextPosition(0));
          if (step % 3 === 1) batch.push([(next + 7) % 1000, whole.nextPosition(1), 1]);
          if (step % 11 === 5) batch.push(...sequenceRows([3, 9, 27, 81], 2, whole.nextPosition(2)));
        }
      });
    } finally {
      ring.close();
    }
  });
}

test('the comparison sees one changed bit of hidden state', async () => {
  const ring = await openRing([4], { path: storiesPath });
  try {
    const [head, tail] = ring.engines;
    assert.ok(head !== undefined && tail !== undefined);
    const rows = sequenceRows(promptOf(head));
    const outcome = decodeTokens(head, rows);
    assert.ok(outcome.kind === 'hidden');
    const hidden = floatsOf(outcome.hidden);
    const run = (): Float32Array[] => {
      tail.removeSequence(0);
      return logitsOf(
        tail.decode({
          rows: rows.length,
          input: { kind: 'hidden', parts: [hidden] },
          positions: rows.map(([, position]) => position),
          sequences: rows.map(() => 0),
          outputs: rows.map(() => 1),
        }),
      );
    };
    const before = run();
    assert.equal(maxDifference(run(), before), 0);
    const bits = new Uint32Array(hidden.buffer);
    bits[17] = (bits[17] ?? 0) ^ (1 << 16);
    assert.notEqual(maxDifference(run(), before), 0);
  } finally {
    ring.close();
  }
});

test('a decode that finds no room changes nothing, and room made by forgetting a sequence is used', () => {
  withEngine({ contextTokens: 255 }, (engine) => {
    assert.equal(engine.cells, 256);
    for (let at = 0; at < 252; at += 63) decodeRows(engine, sequenceRows(new Array(63).fill(7), 0, at));
    const tokens = [0, 379, 395, 264, 364];
    assert.deepEqual(decodeTokens(engine, sequenceRows(tokens, 1)), { kind: 'kv-cache-full' });
    assert.equal(engine.nextPosition(1), 0);
    assert.equal(engine.nextPosition(0), 252);
    assert.equal(engine.usedCells(), 252);
    engine.truncateSequence(0, 200);
    assert.equal(decodeTokens(engine, sequenceRows(tokens, 1)).kind, 'logits');
    assert.equal(engine.usedCells(), 205);
  });
});

test('a truncated sequence goes on as if what was cut had never been', () => {
  withEngine({ decode: 'exact' }, (engine) => {
    const [tokens = []] = prompts;
    const expected = decodeRows(engine, sequenceRows(tokens));
    decodeRows(engine, sequenceRows([100, 200, 300], 0, tokens.length));
    engine.truncateSequence(0, 2);
    assert.equal(engine.nextPosition(0), 2);
    assert.equal(maxDifference(decodeRows(engine, sequenceRows(tokens.slice(2), 0, 2)), expected.slice(2)), 0);
  });
});

test('a prefix that two sequences share costs its cells once, and outlives the first of them', () => {
  withEngine({ decode: 'exact', contextTokens: 255 }, (engine) => {
    const [tokens = []] = prompts;
    const expected = decodeRows(engine, sequenceRows([...tokens, 33])).slice(-1);
    engine.copySequence({ source: 0, target: 1, from: 0, to: tokens.length });
    engine.removeSequence(0);
    assert.equal(maxDifference(decodeRows(engine, [[33, tokens.length, 1]]), expected), 0);
  });
});

test('a token id that the vocabulary has not is refused before anything runs', () => {
  withEngine({}, (engine) => {
    for (const token of [-1, 1024, 2 ** 31, NaN, 1.5]) {
      assert.throws(
        () =>
          decodeTokens(engine, [
            [0, 0, 0],
            [token, 1, 0],
          ]),
        isP4Error('TOKEN_OUT_OF_RANGE'),
      );
    }
    assert.equal(engine.nextPosition(0), 0);
  });
});

test('rows that leave a gap in their sequence end in an error, not in wrong logits', () => {
  withEngine({}, (engine) => {
    decodeRows(engine, sequenceRows([1, 2, 3]));
    assert.throws(() => decodeTokens(engine, [[4, 5, 0]]), isP4Error('STAGE_DECODE'));
  });
});

for (const kv of ['f32', 'bf16', 'q8_0', 'q5_1', 'q5_0', 'q4_1', 'q4_0'] as const) {
  test(`a KV cache of ${kv} works in a ring and gives what the whole model gives`, async () => {
    const options = { path: storiesPath, kv: { keys: kv, values: kv } };
    const ring = await openRing([3], options);
    try {
      withEngine(options, (whole) => {
        const rows = sequenceRows(promptOf(whole));
        assert.equal(maxDifference(ring.decodeRows(rows), decodeRows(whole, rows)), 0);
      });
    } finally {
      ring.close();
    }
  });
}

test('a file that is not this slice is refused with what llama.cpp says', () => {
  assert.throws(() => withEngine({ path: '/nonexistent.gguf' }, () => 0), isP4Error('ENGINE_MODEL_REFUSED'));
  const layers = { first: 0, last: 2 };
  assert.throws(() => withEngine({ layers, modelLayers: storiesLayers }, () => 0), isP4Error('ENGINE_MODEL_REFUSED'));
  assert.throws(() => withEngine({ threads: 0 }, () => 0), isP4Error('INVALID_ARGUMENT'));
  assert.throws(() => withEngine({ contextTokens: 0 }, () => 0), isP4Error('INVALID_ARGUMENT'));
});

test('a KV cache that llama.cpp cannot make is refused with what it says', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'p4-engine-'));
  try {
    const path = join(folder, 'narrow.gguf');
    // Heads of 16 do not hold whole blocks of q8_0, which are 32 wide.
    await writeRandomModel(path, {
      ...benchModelShape,
      layers: 1,
      hiddenWidth: 64,
      heads: 4,
      kvHeads: 4,
      feedForwardWidth: 64,
      vocabularySize: 64,
    });
    const narrow = { path, layers: { first: 0, last: 0 }, modelLayers: 1 };
    withEngine(narrow, (engine) => {
      assert.equal(decodeRows(engine, [[1, 0, 0]]).length, 1);
    });
    assert.throws(
      () => withEngine({ ...narrow, kv: { keys: 'q8_0', values: 'f16' } }, () => 0),
      (error) => isP4Error('ENGINE_CONTEXT_REFUSED')(error) && /block size 32/.test(String(error)),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('thousands of decodes leave memory flat', async () => {
  const ring = await openRing([1], { path: storiesPath, contextTokens: 255 });
  try {
    const [head] = ring.engines;
    assert.ok(head !== undefined);
    const run = (decodes: number): void => {
      for (let at = 0; at < decodes; at += 1) {
        decodeTokens(head, [[at % 1000, at % 200, 0]]);
        if (at % 200 === 199) head.removeSequence(0);
      }
    };
    run(600);
    const before = process.memoryUsage().rss;
    run(2000);
    const grown = process.memoryUsage().rss - before;
    assert.ok(grown < 12e6, `2000 decodes took ${grown} bytes`);
  } finally {
    ring.close();
  }
});

test('an engine that is closed gives back its memory', async () => {
  const program = `
    const { withEngine, decodeRows } = await import(${JSON.stringify(fixtureUrl)});
    const open = (times) => {
      for (let time = 0; time < times; time += 1) withEngine({}, (engine) => decodeRows(engine, [[1, 0, 0]]));
      return process.memoryUsage().rss;
    };
    const before = open(6);
    process.stdout.write(String(open(24) - before));`;
  // glibc does not reuse large aligned blocks of its heap well; as mappings of their own they show what is really kept.
  const env = { ...process.env, MALLOC_MMAP_THRESHOLD_: '65536' };
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], { env });
  assert.ok(Number(stdout) < 8e6, `24 openings took ${stdout} bytes`);
});

test('an engine lives in a worker thread, and its threads sleep while it waits', async () => {
  const worker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
     (async () => {
       const { withEngine, decodeRows, sequenceRows, argmax } = await import(workerData);
       withEngine({ threads: 2 }, (engine) => {
         const next = argmax(decodeRows(engine, sequenceRows([0, 379, 395, 264, 364])).at(-1));
         const before = process.cpuUsage();
         Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
         const used = process.cpuUsage(before);
         parentPort.postMessage({ next, idleUs: used.user + used.system });
       });
     })();`,
    { eval: true, workerData: fixtureUrl },
  );
  const answer: unknown = await new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
  await worker.terminate();
  assert.ok(typeof answer === 'object' && answer !== null && 'next' in answer && 'idleUs' in answer);
  withEngine({}, (engine) => {
    assert.equal(
      answer.next,
      argmax(decodeRows(engine, sequenceRows([0, 379, 395, 264, 364])).at(-1) ?? new Float32Array()),
    );
  });
  // 1 % of the second would be 10,000; the test's own main thread is in it.
  assert.ok(Number(answer.idleUs) < 30_000, `${String(answer.idleUs)} us of CPU in an idle second`);
});

function isP4Error(code: P4Error['code']): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof P4Error, String(error));
    assert.equal(error.code, code);
    return true;
  };
}
