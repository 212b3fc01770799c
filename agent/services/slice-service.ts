/** The part of the Agent service that is about slices: what is there, taking more, cutting them here, removing them. */
import { isAbsolute, join } from 'node:path';

import { P4Error } from '../../protocol/errors.ts';
import { ringName, sliceId, type RingName, type SliceId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { LayerRange } from '../../protocol/plan.ts';
import type { LayerSpan, SliceList, WorkProgress } from '../../protocol/slice-messages.ts';
import { readSliceFolder, removeAbandoned, removeSlice } from '../../model/slice-folder.ts';
import type { RpcHandlers } from '../rpc/calls.ts';
import type { SliceUploads } from '../slices/slice-uploads.ts';
import type { SliceWork } from '../slices/slice-work.ts';
import type { AgentState } from '../state.ts';

export interface SliceServiceOptions {
  readonly state: () => AgentState;
  readonly slicesFolder: string;
  /** Hashes of models are remembered in it. */
  readonly stateFolder: string;
  readonly uploads: SliceUploads;
  readonly work: SliceWork;
}

export type SliceHandlers = Pick<
  RpcHandlers['Agent'],
  'ListSlices' | 'SliceState' | 'ReceiveSlice' | 'RemoveSlices' | 'DescribeModel' | 'CutSlice'
>;

export function sliceService(options: SliceServiceOptions): SliceHandlers {
  const { uploads, work, slicesFolder } = options;
  const hashCachePath = join(options.stateFolder, 'model-hashes.json');
  return {
    ListSlices: () => listSlices(options),
    SliceState: async ({ sliceIds }) => ({
      slices: await Promise.all(parsedIds(sliceIds).map((id) => uploads.state(id))),
    }),
    ReceiveSlice: (chunks, { signal }) => uploads.receive(chunks, signal),
    RemoveSlices: ({ sliceIds }) => removeSlices(options, parsedIds(sliceIds)),
    DescribeModel: async ({ path, slices }, { signal }, stream) => {
      if (slices.length > limits.stages) throw invalid('slices', `${slices.length}`, `at most ${limits.stages}`);
      const task = { kind: 'describe', path: parsedPath(path), slices: slices.map(parsedSpan), hashCachePath } as const;
      const model = await work.run(task, {
        signal,
        onProgress: (...bytes) => void stream.send({ news: 'progress', progress: progressOf(...bytes) }),
      });
      await stream.send({ news: 'model', model });
    },
    CutSlice: async ({ path, layers, sliceId: id }, { signal }, stream) => {
      const span = parsedSpan(layers ?? { first: 1, last: 0 });
      const slice = { path: parsedPath(path), layers: span, sliceId: sliceId(id) };
      const cut = await work.run(
        { kind: 'cut', ...slice, folder: slicesFolder, hashCachePath },
        {
          signal,
          onProgress: (...bytes) => void stream.send({ news: 'progress', progress: progressOf(...bytes) }),
        },
      );
      await stream.send({ news: 'cut', cut });
    },
  };
}

/**
 * The rings that use each slice. A ring's slices on other hosts count too: agents of one machine may share a folder. Of a
 * ring that is claimed alone, nothing here says which slices were its own.
 */
export function slicesInUse(state: AgentState): ReadonlyMap<SliceId, readonly RingName[]> {
  const uses = new Map<SliceId, RingName[]>();
  for (const ring of state.rings.values()) {
    if (ring.kind !== 'live') continue;
    for (const id of new Set(ring.placements.map((placement) => placement.sliceId)))
      uses.set(id, [...(uses.get(id) ?? []), ringName(ring.ring)]);
  }
  return uses;
}

async function listSlices({ state, slicesFolder }: SliceServiceOptions): Promise<SliceList> {
  const { slices, unfinished } = await readSliceFolder(slicesFolder);
  const uses = slicesInUse(state());
  return {
    slices: slices.map(({ id, bytes, lastUsedMs }) => ({
      sliceId: id,
      bytes: String(bytes),
      rings: uses.get(id) ?? [],
      lastUsedMs: String(Math.round(lastUsedMs)),
    })),
    unfinishedBytes: String(unfinished.reduce((sum, { bytes }) => sum + bytes, 0)),
  };
}

/** What is in use is looked up right before each one goes: a load that comes meanwhile keeps its slices. */
async function removeSlices(
  { state, slicesFolder, uploads }: SliceServiceOptions,
  ids: readonly SliceId[],
): Promise<{ removed: readonly string[]; kept: readonly string[] }> {
  const removed: string[] = [];
  const kept: string[] = [];
  for (const id of ids) {
    if (slicesInUse(state()).has(id) || uploads.isReceiving(id)) kept.push(id);
    else if (await removeSlice(slicesFolder, id)) removed.push(id);
  }
  await removeAbandoned(slicesFolder, Date.now());
  return { removed, kept };
}

function parsedIds(ids: readonly string[]): readonly SliceId[] {
  if (ids.length > limits.slicesAsked) throw invalid('slices', `${ids.length} ids`, `at most ${limits.slicesAsked}`);
  return ids.map(sliceId);
}

/** A path on this host, as the operator wrote it into the plan; whether it may be read is the system's to say. */
function parsedPath(path: string): string {
  if (isAbsolute(path) && path.length <= limits.pathCharacters && !path.includes('\0')) return path;
  throw invalid('path', path.slice(0, 100), `an absolute path of at most ${limits.pathCharacters} characters`);
}

function parsedSpan({ first, last }: LayerSpan): LayerRange {
  if (first <= last && last < limits.modelLayers) return { first, last };
  throw invalid('layers', `${first}-${last}`, `layers in order, below ${limits.modelLayers}`);
}

const progressOf = (doneBytes: number, totalBytes: number): WorkProgress => ({
  doneBytes: String(doneBytes),
  totalBytes: String(totalBytes),
});

const invalid = (what: string, found: string, expected: string): P4Error =>
  new P4Error('INVALID_ARGUMENT', { what, found, expected });
