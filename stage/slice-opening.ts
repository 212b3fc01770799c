/** From a load command to an engine: the file is checked before libllama sees it, which aborts on some bad files. */
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { layersText } from '../protocol/plan.ts';
import type { StageFacts, StageLoad } from '../protocol/stage-control.ts';
import { readSliceIdentity, type SliceIdentity } from '../model/slice-identity.ts';
import { openEngine, type Engine } from './engine.ts';
import { visibleIndex } from './gpu-visibility.ts';

export interface OpenedSlice {
  readonly engine: Engine;
  readonly facts: StageFacts;
}

/** @throws what `readSliceIdentity` and `openEngine` throw; SLICE_MISMATCH when the file is another slice, INVALID_ARGUMENT when its layers are not the node's */
export async function openSlice(load: StageLoad): Promise<OpenedSlice> {
  const startedMs = performance.now();
  const identity = await readSliceIdentity(load.slicePath);
  requireSame(identity, load);
  requirePlace(load);
  const engine = openEngine({
    path: load.slicePath,
    layers: load.layers,
    modelLayers: load.modelLayers,
    contextTokens: load.contextTokens * load.sessions,
    sequences: load.sessions + load.keptPrefixes,
    batchRows: limits.cpuDecodeRows,
    decode: load.decode,
    wire: load.wire,
    kv: load.kv,
    device: load.device.kind === 'gpu' ? { ...load.device, index: visibleIndex } : load.device,
    threads: load.threads,
    poll: null,
    inputDivisor: identity.inputDivisor,
    libraryFolder: null,
  });
  return {
    engine,
    facts: {
      weightBytes: identity.bytes,
      hiddenWidth: engine.width,
      vocabularySize: engine.vocabulary.size,
      hasTokenizer: engine.vocabulary.hasTokenizer,
      keepsPrefixes: engine.keepsPrefixes,
      loadMs: performance.now() - startedMs,
    },
  };
}

function requireSame(identity: SliceIdentity, { sliceId, layers, modelLayers, slicePath }: StageLoad): void {
  const found = `${identity.sliceId}, layers ${layersText(identity)} of ${identity.modelLayers}`;
  const expected = `${sliceId}, layers ${layersText(layers)} of ${modelLayers}`;
  if (found !== expected) throw new P4Error('SLICE_MISMATCH', { file: slicePath, found, expected });
}

/** The first stage takes tokens, the last gives them: node and layers must say the same. */
function requirePlace({ node, stages, layers, modelLayers }: StageLoad): void {
  const isHead = layers.first === 0;
  const isTail = layers.last === modelLayers - 1;
  if (isHead === (node === 0) && isTail === (node === stages - 1) && node < stages) return;
  const found = `node ${node} of ${stages} with layers ${layersText(layers)} of ${modelLayers}`;
  throw new P4Error('INVALID_ARGUMENT', {
    what: 'stage',
    found,
    expected: 'the first and last layers on head and tail',
  });
}
