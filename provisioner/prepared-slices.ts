/** The slices of a plan, cut where they are missing: what agents then load. */
import { join } from 'node:path';

import { hashModel } from '../model/model-hash.ts';
import type { ModelFile } from '../model/model-file.ts';
import { cutSlice, type CutSlice } from '../model/slice-cutter.ts';
import { planSlice } from '../model/slice-plan.ts';
import { layersText, type Plan } from '../protocol/plan.ts';
import type { CommandContext } from './command.ts';
import type { StateFolder } from './state-folder.ts';
import { bytesText } from './text-table.ts';

export interface SliceOrder {
  readonly plan: Plan;
  readonly model: ModelFile;
  /** Where slices go. */
  readonly folder: string;
  /** Remembers the hashes of models by path, size and time. */
  readonly hashCachePath: string;
}

/**
 * Cuts the slices of all stages, in ring order. Equal slices and those of an earlier load are cut once.
 * @throws what `hashModel`, `planSlice` and `cutSlice` throw; the signal's reason
 */
export async function prepareSlices(order: SliceOrder, context: CommandContext): Promise<readonly CutSlice[]> {
  const { plan, model, folder } = order;
  const { terminal, signal } = context;
  const modelHash = await hashModel(model, {
    cachePath: order.hashCachePath,
    signal,
    onProgress: (bytes) => {
      terminal.progress(`hashing the model, ${bytesText(model.bytes)}`, bytes / model.bytes);
    },
  });
  const planned = plan.stages.map(({ layers }) => planSlice(model, modelHash, layers));
  const slices: CutSlice[] = [];
  for (const slice of planned) {
    const label = `cutting layers ${layersText(slice.range)}, ${bytesText(slice.bytes)}`;
    const onProgress = (bytes: number): void => {
      terminal.progress(label, bytes / slice.bytes);
    };
    slices.push(await cutSlice({ model, plan: slice, folder, onProgress, signal }));
  }
  terminal.endProgress();
  return slices;
}

/** Where local agents look for slices, and the loader cuts them. */
export const slicesFolderIn = ({ root }: StateFolder): string => join(root, 'slices');

export const hashCachePathIn = ({ root }: StateFolder): string => join(root, 'model-hashes.json');
