/**
 * The uncut model in one process: the engine and the sampler of a stage, and a loop around them. Nothing else: no
 * socket, no frames, no agent. It ends when whoever started it is gone.
 */
import { assert, present, unreachable } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { defaultSampling } from '../../protocol/sampling.ts';
import { Candidates } from '../../stage/candidates.ts';
import { openEngine, type DecodeBatch, type Engine } from '../../stage/engine.ts';
import { openSampler, type Sampler } from '../../stage/sampler.ts';
import { intervalsOf, type DecodeOrder, type DecodeRun, type PrefillRun } from './arm.ts';
import { cpuMs } from './process-usage.ts';
import { serveEcho } from './round-trip.ts';
import type { UncutAnswer, UncutModel, UncutOrder } from './uncut-messages.ts';

const sequence = 0;

class UncutLoop {
  readonly #engine: Engine;
  readonly #candidates: Candidates;
  #computeMs = 0;

  constructor({ path, layers, contextTokens, threads }: UncutModel) {
    this.#engine = openEngine({
      path,
      layers: { first: 0, last: layers - 1 },
      modelLayers: layers,
      contextTokens,
      sequences: 1,
      batchRows: limits.cpuDecodeRows,
      decode: 'fast',
      wire: 'f32',
      kv: { keys: 'f16', values: 'f16' },
      device: { kind: 'cpu' },
      threads,
      poll: null,
      inputDivisor: 1,
      libraryFolder: null,
    });
    this.#candidates = new Candidates(this.#engine.vocabulary.size);
  }

  decode({ prompt, tokens: count }: DecodeOrder): DecodeRun {
    return this.#withSampler((sampler) => {
      const tokens = [this.#next(prompt, 0, sampler)];
      this.#computeMs = 0;
      const startCpuMs = cpuMs(process.pid);
      const timesMs = [performance.now()];
      while (tokens.length < count) {
        const position = prompt.length + tokens.length - 1;
        tokens.push(this.#next([present(tokens.at(-1), 'a token was drawn')], position, sampler));
        timesMs.push(performance.now());
      }
      const spentCpuMs = cpuMs(process.pid) - startCpuMs;
      return {
        tokens,
        intervalsMs: intervalsOf(timesMs),
        computeMs: [this.#computeMs / (count - 1)],
        cpuMs: [spentCpuMs / (count - 1)],
      };
    });
  }

  prefill(prompt: readonly number[]): PrefillRun {
    return this.#withSampler((sampler) => {
      const startMs = performance.now();
      const token = this.#next(prompt, 0, sampler);
      return { token, ms: performance.now() - startMs };
    });
  }

  #withSampler<Result>(work: (sampler: Sampler) => Result): Result {
    const sampling = { ...defaultSampling, temperature: 0 };
    const sampler = openSampler(this.#engine.vocabulary, this.#candidates, sampling);
    try {
      return work(sampler);
    } finally {
      sampler.close();
      this.#engine.removeSequence(sequence);
    }
  }

  /** Runs rows in the chunks that a head makes of a prompt, and draws from the last one. */
  #next(rows: readonly number[], firstPosition: number, sampler: Sampler): number {
    const most = limits.cpuDecodeRows;
    let logits: Float32Array | undefined;
    for (let at = 0; at < rows.length; at += most) {
      const tokens = rows.slice(at, at + most);
      const isLast = at + most >= rows.length;
      logits = this.#run({
        rows: tokens.length,
        input: { kind: 'tokens', tokens },
        positions: tokens.map((_, index) => firstPosition + at + index),
        sequences: tokens.map(() => sequence),
        outputs: tokens.map((_, index) => (isLast && index === tokens.length - 1 ? 1 : 0)),
      });
    }
    const drawn = sampler.sample(present(logits, 'the last row has logits'), sampler.emitted);
    assert(drawn.kind === 'token', 'without a grammar there is always a token');
    return drawn.token;
  }

  #run(batch: DecodeBatch): Float32Array | undefined {
    const startMs = performance.now();
    const outcome = this.#engine.decode(batch);
    this.#computeMs += performance.now() - startMs;
    assert(outcome.kind === 'logits', 'the whole model gives logits, and its cache has room');
    return outcome.rows.at(-1)?.logits;
  }
}

let loop: UncutLoop | null = null;

async function answer(order: UncutOrder): Promise<UncutAnswer> {
  switch (order.kind) {
    case 'open':
      loop = new UncutLoop(order.model);
      return { kind: 'open', echoPort: await serveEcho() };
    case 'decode':
      return { kind: 'decode', run: present(loop, 'the model is open').decode(order.order) };
    case 'prefill':
      return { kind: 'prefill', run: present(loop, 'the model is open').prefill(order.prompt) };
    default:
      return unreachable(order);
  }
}

process.on('message', (order: UncutOrder) => {
  answer(order).then(
    (found) => process.send?.(found),
    (error: unknown) => {
      if (!(error instanceof P4Error)) throw error;
      const failed: UncutAnswer = { kind: 'failed', code: error.code, facts: error.facts };
      process.send?.(failed);
    },
  );
});
process.on('disconnect', () => {
  process.exit(0);
});
