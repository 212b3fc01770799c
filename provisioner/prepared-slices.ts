/** The operator's own folder of slices: cut here where a host lacks one, and where local agents look for theirs. */
import { join } from 'node:path';

import { cutSlice } from '../model/slice-cutter.ts';
import type { SlicePlan } from '../model/slice-plan.ts';
import { layersText } from '../protocol/plan.ts';
import type { CommandContext } from './command.ts';
import type { OperatorModel } from './plan-model.ts';
import type { StateFolder } from './state-folder.ts';
import { bytesText } from './text-table.ts';

export interface CutOrder {
  readonly model: OperatorModel;
  readonly plans: readonly SlicePlan[];
  readonly folder: string;
}

/**
 * Cuts slices one after another; one that is there is kept.
 * @throws what `cutSlice` throws; the signal's reason
 */
export async function cutSlices(
  { model, plans, folder }: CutOrder,
  { terminal, signal }: CommandContext,
): Promise<void> {
  for (const plan of plans) {
    const label = `cutting layers ${layersText(plan.range)}, ${bytesText(plan.bytes)}`;
    const onProgress = (bytes: number): void => {
      terminal.progress(label, bytes / plan.bytes);
    };
    await cutSlice({ model: model.file, plan, folder, onProgress, signal });
  }
  terminal.endProgress();
}

/** Where local agents look for slices, and the loader cuts them. */
export const slicesFolderIn = ({ root }: StateFolder): string => join(root, 'slices');

export const hashCachePathIn = ({ root }: StateFolder): string => join(root, 'model-hashes.json');
