/** Which layers of a model attend to a window of the past only, as llama.cpp's `load_swa_pattern` decides it. */
import { limits } from '../protocol/limits.ts';
import { architectureKey, architectureRule } from './architecture.ts';
import { numbersOf, unsignedOf } from './gguf-value.ts';
import type { ModelFile } from './model-file.ts';

/** Where the metadata keep the list of them (or a period), in the architecture's namespace. */
export const slidingWindowKey = 'attention.sliding_window_pattern';

/**
 * One flag a layer; `null` for a model that has no such layers. A list in the metadata decides, else a period there,
 * else the architecture's own. A list is given as it stands: its length is checked when a model is opened.
 */
export function slidingWindowLayers(model: ModelFile): readonly boolean[] | null {
  const { slidingWindow } = architectureRule(model.architecture);
  const window = unsignedOf(model.metadata.get(architectureKey(model, 'attention.sliding_window'))) ?? 0;
  if (slidingWindow.kind === 'none' || window === 0) return null;
  const stated = model.metadata.get(architectureKey(model, slidingWindowKey));
  if (stated?.kind === 'array') return numbersOf(stated, limits.modelLayers).map((element) => element !== 0);
  const period = unsignedOf(stated) ?? slidingWindow.period;
  return Array.from({ length: model.layers }, (_, layer) => period === 0 || layer % period < period - 1);
}
