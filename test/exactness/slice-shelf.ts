/** The slices of one model: cut when they are first asked for, opened, and kept open for the rings that use them again. */
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { openModel, type ModelFile } from '../../model/model-file.ts';
import { hashModel } from '../../model/model-hash.ts';
import { cutSlice } from '../../model/slice-cutter.ts';
import { readSliceIdentity } from '../../model/slice-identity.ts';
import { planSlice } from '../../model/slice-plan.ts';
import { layersText, type LayerRange, type WireType } from '../../protocol/plan.ts';
import { openEngine } from '../../stage/engine.ts';
import type { ContextShape } from './subjects.ts';
import type { OpenSlice } from './replay.ts';

export class SliceShelf {
  readonly model: ModelFile;
  readonly #hash: string;
  readonly #folder: string;
  readonly #shape: ContextShape;
  readonly #wire: WireType;
  readonly #open = new Map<string, OpenSlice>();

  private constructor(parts: { model: ModelFile; hash: string; folder: string; shape: ContextShape; wire: WireType }) {
    this.model = parts.model;
    this.#hash = parts.hash;
    this.#folder = parts.folder;
    this.#shape = parts.shape;
    this.#wire = parts.wire;
    process.once('exit', this.#removeFolder);
  }

  static async create(path: string, shape: ContextShape, wire: WireType = 'f32'): Promise<SliceShelf> {
    const model = await openModel(path);
    const hash = await hashModel(model);
    return new SliceShelf({ model, hash, folder: await mkdtemp(join(tmpdir(), 'p4-exactness-')), shape, wire });
  }

  /** The path of a slice's file. */
  async cut(layers: LayerRange): Promise<string> {
    const { model } = this;
    return (await cutSlice({ model, plan: planSlice(model, this.#hash, layers), folder: this.#folder })).path;
  }

  async open(layers: LayerRange): Promise<OpenSlice> {
    const known = this.#open.get(layersText(layers));
    if (known !== undefined) return known;
    const slice = await this.openFile(layers, await this.cut(layers));
    this.#open.set(layersText(layers), slice);
    return slice;
  }

  /** Opens a file as the slice of these layers; the caller closes it. */
  async openFile(layers: LayerRange, path: string): Promise<OpenSlice> {
    const { inputDivisor } = await readSliceIdentity(path);
    const engine = openEngine({
      path,
      layers,
      modelLayers: this.model.layers,
      ...this.#shape,
      decode: 'fast',
      wire: this.#wire,
      device: { kind: 'cpu' },
      threads: 1,
      poll: null,
      inputDivisor,
      libraryFolder: null,
    });
    return { layers, engine };
  }

  async openRing(ranges: readonly LayerRange[]): Promise<OpenSlice[]> {
    const slices: OpenSlice[] = [];
    for (const layers of ranges) slices.push(await this.open(layers));
    return slices;
  }

  /** Closes what is open and removes the files: large slices do not stay for the next ring. */
  async empty(): Promise<void> {
    for (const { engine } of this.#open.values()) engine.close();
    this.#open.clear();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** At the end: nothing of it stays. */
  async close(): Promise<void> {
    await this.empty();
    process.off('exit', this.#removeFolder);
  }

  /** For a run that is interrupted. */
  readonly #removeFolder = (): void => {
    rmSync(this.#folder, { recursive: true, force: true });
  };
}
