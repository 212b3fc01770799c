/** The models that the proof is about, and what each is asked. */
import { readdirSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import { architectureRules } from '../../model/architecture.ts';
import { benchModelShape, writeRandomModel, type RandomModelShape } from '../../model/random-model.ts';
import type { WeightType } from '../../model/random-weights.ts';
import { openModel, type ModelFile } from '../../model/model-file.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { KvType } from '../../protocol/plan.ts';
import { storiesPath } from '../../stage/engine-fixture.ts';
import { chunkedScript, mixedScript, randomTokens, type Script } from './script.ts';

/** The settings of a context that are part of the shapes, the same for the uncut model and for every slice. */
export interface ContextShape {
  readonly contextTokens: number;
  readonly sequences: number;
  readonly batchRows: number;
  readonly kv: { readonly keys: KvType; readonly values: KvType };
}

/** Room for the three sessions of `mixedScript`. */
export const contextShape: ContextShape = {
  contextTokens: 511,
  sequences: 4,
  batchRows: 63,
  kv: { keys: 'f16', values: 'f16' },
};

export interface Subject {
  readonly name: string;
  readonly path: string;
}

export const stories: Subject = { name: 'stories', path: storiesPath };

const modelsFolder = join(import.meta.dirname, '..', '..', '..', 'test', 'models');

/** Models of 12 layers, 128 wide: one or two of each architecture whose slices are proven. */
export async function smallSubjects(): Promise<Subject[]> {
  const paths = readdirSync(modelsFolder)
    .filter((name) => name.endsWith('.gguf'))
    .sort()
    .map((name) => join(modelsFolder, name));
  const subjects: Subject[] = [];
  for (const path of paths) {
    if (await isProven(path)) subjects.push({ name: basename(path, '.gguf'), path });
  }
  return subjects;
}

async function isProven(path: string): Promise<boolean> {
  try {
    await openModel(path);
    return true;
  } catch (error) {
    // A model whose architecture is refused stands there for the tests of that.
    if (error instanceof P4Error && error.code === 'MODEL_ARCHITECTURE_UNPROVEN') return false;
    throw error;
  }
}

/** Architectures that are said to be proven and have no model here. */
export async function architecturesWithoutSubject(subjects: readonly Subject[]): Promise<string[]> {
  const models = await Promise.all(subjects.map(({ path }) => openModel(path)));
  const there = new Set(models.map(({ architecture }) => architecture));
  return [...architectureRules.keys()].filter((name) => !there.has(name));
}

export interface TemporarySubject extends Subject {
  /** For files beside the model; gone with it. */
  readonly folder: string;
  remove(): Promise<void>;
}

/** Writes the benchmark's model of 199 M parameters, in its own type or another. */
export const makeBenchModel = (weightType: WeightType = benchModelShape.weightType): Promise<TemporarySubject> =>
  makeRandomModel(weightType === benchModelShape.weightType ? '200 M bench' : `200 M bench ${weightType}`, {
    ...benchModelShape,
    weightType,
  });

/** Writes a model with random weights. */
export async function makeRandomModel(name: string, shape: RandomModelShape): Promise<TemporarySubject> {
  const folder = await mkdtemp(join(tmpdir(), 'p4-bench-model-'));
  const path = join(folder, 'bench.gguf');
  // An interrupted run ends here too.
  const removeNow = (): void => {
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', removeNow);
  const remove = async (): Promise<void> => {
    process.off('exit', removeNow);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await writeRandomModel(path, shape);
  } catch (error) {
    await remove();
    throw error;
  }
  return { name, path, folder, remove };
}

/** Prompt tokens of a subject: any of its vocabulary, from a seed. */
const promptOf = (model: ModelFile, seed: number, length: number): number[] =>
  randomTokens(seed, length, model.vocabularySize);

/** The script that every slice is put through. A sliding window (32 rows in these models) is passed several times. */
export function sliceScripts(model: ModelFile): Script[] {
  const prompts = [63, 63, 21].map((length, index) => promptOf(model, 100 + index, length));
  return [mixedScript(prompts, 64)];
}

/** Rows of a chunk, for a prompt of 63. */
export const chunkings = [63, 1, 2, 7, 16] as const;

/** What rings are put through: one prompt in each chunking, with tokens after it; 64 of them after the first chunking. */
export function ringScripts(model: ModelFile, chunkRows: readonly number[], stepsAfterChunks: number): Script[] {
  const prompt = promptOf(model, 200, 63);
  return chunkRows.map((rows, index) => chunkedScript(prompt, rows, index === 0 ? 64 : stepsAfterChunks));
}
