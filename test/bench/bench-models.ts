/** The models that are measured, each written from a seed when it is first asked for. */
import { join } from 'node:path';

import { benchModelShape, writeRandomModel, type RandomModelShape } from '../../model/random-model.ts';
import type { Terminal } from '../../provisioner/terminal.ts';

export interface BenchModel {
  readonly path: string;
  readonly layers: number;
  readonly vocabularySize: number;
}

/**
 * - `bench`: 199 million parameters.
 * - `large`: 4 times as many, for the price of a token beside a token that takes longer.
 * - `tiny`: computes next to nothing, and can be cut into 16 stages.
 */
export type BenchModelName = 'bench' | 'large' | 'tiny';

export type BenchShapes = Readonly<Record<BenchModelName, RandomModelShape>>;

export const fullShapes: BenchShapes = {
  bench: benchModelShape,
  large: { ...benchModelShape, hiddenWidth: 2048, heads: 32, kvHeads: 16, feedForwardWidth: 5376 },
  tiny: {
    ...benchModelShape,
    ...{ hiddenWidth: 256, heads: 4, kvHeads: 2, feedForwardWidth: 512, vocabularySize: 1024 },
  },
};

export class BenchModels {
  readonly #folder: string;
  readonly #shapes: BenchShapes;
  readonly #terminal: Terminal;
  readonly #made = new Map<BenchModelName, BenchModel>();

  /** @param parts the folder is its owner's, who removes it */
  constructor(parts: { readonly folder: string; readonly shapes: BenchShapes; readonly terminal: Terminal }) {
    this.#folder = parts.folder;
    this.#shapes = parts.shapes;
    this.#terminal = parts.terminal;
  }

  async model(name: BenchModelName): Promise<BenchModel> {
    const made = this.#made.get(name);
    if (made !== undefined) return made;
    const shape = this.#shapes[name];
    const { layers, vocabularySize } = shape;
    const model = { path: join(this.#folder, `${name}.gguf`), layers, vocabularySize };
    this.#terminal.note(`Making the model “${name}” ...`);
    await writeRandomModel(model.path, shape);
    this.#made.set(name, model);
    return model;
  }
}
