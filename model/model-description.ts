/** What an operator without a model's file has to know of it: as much as a plan is checked and loaded with. */
import type { LayerRange } from '../protocol/plan.ts';
import type { ModelDescription, SliceDescription } from '../protocol/slice-messages.ts';
import { legalCuts, sliceFault } from './layer-cut.ts';
import { sliceMemory } from './memory-estimate.ts';
import type { ModelFile } from './model-file.ts';
import { planSlice } from './slice-plan.ts';

/** @param slices the layers of each slice that is wanted; one that cannot be is answered with why */
export function describeModel(model: ModelFile, modelHash: string, slices: readonly LayerRange[]): ModelDescription {
  const { architecture, layers, contextTokens, bytes } = model;
  const cutsAfter = legalCuts(model);
  const described = slices.map((range) => describeSlice(model, modelHash, range));
  return { modelHash, architecture, layers, contextTokens, bytes: String(bytes), cutsAfter, slices: described };
}

function describeSlice(model: ModelFile, modelHash: string, range: LayerRange): SliceDescription {
  const fault = sliceFault(model, range);
  if (fault !== null) return { fault, sliceId: '', bytes: '0', memory: null };
  const plan = planSlice(model, modelHash, range);
  const { weightBytes, headerBytes, ...counts } = sliceMemory(model, plan);
  const memory = { weightBytes: String(weightBytes), headerBytes: String(headerBytes), ...counts };
  return { fault: '', sliceId: plan.id, bytes: String(plan.bytes), memory };
}
