/** What the uncut model makes of scripts: every decode, the hidden state at every layer boundary, and the logits. */
import { assert, present } from '../../protocol/assert.ts';
import type { Script, Turn } from './script.ts';
import type { ContextShape } from './subjects.ts';
import { UncutModel, type TokenBatch, type UncutOutcome } from './uncut-model.ts';

export interface RecordedDecode extends UncutOutcome {
  readonly batch: TokenBatch;
  /** Whether the KV cache is empty before. */
  readonly isFirst: boolean;
}

export interface Recording {
  readonly script: string;
  readonly decodes: readonly RecordedDecode[];
}

/** Runs a script: greedy rows carry the token that the sequence's latest logits are for. */
export function record(model: UncutModel, script: Script): Recording {
  model.clear();
  const feeder = new Feeder(script);
  const decodes = script.turns.map((turn, index): RecordedDecode => {
    const batch = feeder.batch(turn);
    const outcome = model.decode(batch);
    feeder.heed(batch, outcome.logits);
    return { ...outcome, batch, isFirst: index === 0 };
  });
  return { script: script.name, decodes };
}

/** What the uncut model makes of the scripts, its logits alone. */
export function recordTokens(path: string, shape: ContextShape, scripts: readonly Script[]): Recording[] {
  const model = new UncutModel({ path, ...shape, observes: false });
  try {
    return scripts.map((script) => record(model, script));
  } finally {
    model.close();
  }
}

class Feeder {
  readonly #prompts: readonly (readonly number[])[];
  readonly #positions: number[];
  /** The latest greedy token of each sequence. */
  readonly #next: (number | null)[];

  constructor({ prompts }: Script) {
    this.#prompts = prompts;
    this.#positions = prompts.map(() => 0);
    this.#next = prompts.map(() => null);
  }

  batch({ feeds, outputs }: Turn): TokenBatch {
    const rows = feeds.flatMap(({ sequence, rows: count }) => {
      const first = present(this.#positions[sequence], 'the sequence has a prompt');
      const tokens = count === 'greedy' ? [this.#greedy(sequence)] : this.#promptRows(sequence, count);
      this.#positions[sequence] = first + tokens.length;
      const isDrawn = this.#positions[sequence] >= this.#promptOf(sequence).length;
      return tokens.map((token, at) => ({
        token,
        position: first + at,
        sequence,
        output: outputs === 'all' || (isDrawn && at === tokens.length - 1),
      }));
    });
    return {
      tokens: rows.map(({ token }) => token),
      positions: rows.map(({ position }) => position),
      sequences: rows.map(({ sequence }) => sequence),
      outputs: rows.map(({ output }) => output),
    };
  }

  heed({ sequences, outputs }: TokenBatch, logits: readonly Float32Array[]): void {
    let at = 0;
    outputs.forEach((isWanted, row) => {
      if (!isWanted) return;
      this.#next[sequences[row] ?? 0] = greedyToken(present(logits[at], 'wanted logits are there'));
      at += 1;
    });
  }

  #promptRows(sequence: number, count: number): readonly number[] {
    const first = present(this.#positions[sequence], 'the sequence has a prompt');
    const tokens = this.#promptOf(sequence).slice(first, first + count);
    assert(tokens.length === count, 'the prompt has these rows left');
    return tokens;
  }

  #greedy(sequence: number): number {
    return present(this.#next[sequence] ?? null, 'the sequence has logits to go on from');
  }

  #promptOf(sequence: number): readonly number[] {
    return present(this.#prompts[sequence], 'the sequence has a prompt');
  }
}

/** The likeliest token; of several the first. */
export function greedyToken(logits: Float32Array): number {
  let best = 0;
  for (let token = 1; token < logits.length; token += 1) {
    if ((logits[token] ?? NaN) > (logits[best] ?? NaN)) best = token;
  }
  return best;
}
