import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import type { Engine, EngineOptions } from './engine.ts';
import { decodeRows, maxDifference, sequenceRows, storiesPath, withEngine } from './engine-fixture.ts';

const windowedPath = join(import.meta.dirname, '..', '..', 'test', 'models', 'gemma3-dense.gguf');

interface OrderedModel {
  readonly name: string;
  readonly options: Partial<EngineOptions>;
}

const models: readonly OrderedModel[] = [
  { name: 'stories', options: { path: storiesPath } },
  // Windows of 32 rows: what is moved is longer than that.
  { name: 'gemma3', options: { path: windowedPath, layers: { first: 0, last: 11 }, modelLayers: 12 } },
];

/** Some tokens of both vocabularies. */
const tokensOf = (seed: number): number[] => Array.from({ length: 100 }, (_, index) => (seed * 37 + index * 11) % 128);
const [mine, ...others] = [1, 2, 3].map(tokensOf);
const text = mine ?? [];

/** 40 rows at once, then one by one; `disturb` comes before the row of each position. */
function run(engine: Engine, disturb: (position: number) => void): Float32Array[] {
  const logits = decodeRows(engine, sequenceRows(text.slice(0, 40)));
  for (let position = 40; position < text.length; position += 1) {
    disturb(position);
    logits.push(...decodeRows(engine, sequenceRows(text.slice(position, position + 1), 0, position)));
  }
  for (let sequence = 0; sequence < 4; sequence += 1) engine.removeSequence(sequence);
  return logits;
}

const feed = (engine: Engine, sequence: number, rows: number): void => {
  const from = engine.nextPosition(sequence);
  decodeRows(engine, sequenceRows((others[sequence - 1] ?? text).slice(from, from + rows), sequence, from));
};

for (const { name, options } of models) {
  describe(`with decode: exact, ${name}: a session has the bits it has alone`, () => {
    const compare = (disturb: (engine: Engine, position: number) => void, before = (_: Engine): void => undefined) => {
      withEngine({ ...options, decode: 'exact' }, (engine) => {
        const alone = run(engine, () => undefined);
        before(engine);
        const beside = run(engine, (position) => {
          disturb(engine, position);
        });
        assert.equal(maxDifference(beside, alone), 0);
        assert.equal(engine.usedCells(), 0);
      });
    };

    test('when a neighbour leaves cells in front of it', () => {
      compare(
        (engine, position) => {
          if (position === 45) engine.removeSequence(1);
        },
        (engine) => {
          feed(engine, 1, 60);
        },
      );
    });

    test('when neighbours come and go all the time', () => {
      compare((engine, position) => {
        for (const sequence of [1, 2]) feed(engine, sequence, 1 + ((position + sequence) % 3));
        if (position % 7 === 0) engine.removeSequence(1);
        if (position % 11 === 0) engine.truncateSequence(2, 5);
      });
    });

    test('when it was moved and then cut back to where a window has long passed', () => {
      withEngine({ ...options, decode: 'exact' }, (engine) => {
        const alone = run(engine, () => undefined).slice(60);
        feed(engine, 1, 60);
        decodeRows(engine, sequenceRows(text.slice(0, 60)));
        decodeRows(engine, sequenceRows(text.slice(20, 60), 0, 60));
        engine.removeSequence(1);
        feed(engine, 2, 3);
        engine.truncateSequence(0, 60);
        const rest = text.slice(60).flatMap((token, index) => decodeRows(engine, sequenceRows([token], 0, 60 + index)));
        assert.equal(maxDifference(rest, alone), 0);
      });
    });
  });
}

for (const { name, options } of models) {
  for (const decode of ['fast', 'exact'] as const) {
    test(`a cache that was cleared is as after the load, whatever was in it: ${name}, decode: ${decode}`, () => {
      withEngine({ ...options, decode }, (engine) => {
        const asLoaded = run(engine, () => undefined);
        feed(engine, 1, 30);
        feed(engine, 2, 20);
        feed(engine, 3, 20);
        decodeRows(engine, sequenceRows(text.slice(0, 9), engine.reservedSequence));
        // What lies behind the holes would move before the next decode.
        engine.removeSequence(1);
        engine.truncateSequence(2, 7);
        engine.clear();
        // Together more rows than there are cells.
        for (let rows = 0; rows <= engine.cells; rows += 60) {
          feed(engine, 1, 60);
          engine.clear();
        }
        for (let sequence = 0; sequence <= engine.reservedSequence; sequence += 1)
          assert.equal(engine.nextPosition(sequence), 0);
        assert.equal(engine.usedCells(), 0);
        assert.equal(
          maxDifference(
            run(engine, () => undefined),
            asLoaded,
          ),
          0,
        );
      });
    });
  }
}

test('with decode: fast, a sequence of a model with a sliding window is cut back as if what was cut had never been', () => {
  const [gemma] = models.slice(1);
  withEngine({ ...gemma?.options }, (engine) => {
    const rest = (): Float32Array[] => {
      engine.truncateSequence(0, 50);
      return decodeRows(engine, sequenceRows(text.slice(50, 80), 0, 50));
    };
    const begin = (): void => {
      for (const from of [0, 50]) decodeRows(engine, sequenceRows(text.slice(from, from + 50), 0, from));
    };
    begin();
    const alone = rest();
    engine.removeSequence(0);

    feed(engine, 1, 60);
    begin();
    engine.removeSequence(1);
    // More rows than there are cells in front of sequence 0, most of whose own have left the window.
    for (let chunk = 0; chunk < 2; chunk += 1) feed(engine, 2, 50);
    assert.equal(engine.usedCells(), 200);
    assert.equal(maxDifference(rest(), alone), 0);
  });
});
