/** The worker thread of one `SliceTask`. Started by `slice-work.ts`. */
import { stat } from 'node:fs/promises';
import { parentPort, workerData } from 'node:worker_threads';

import { fileHash } from '../../model/file-hash.ts';
import { describeModel } from '../../model/model-description.ts';
import { openModel, type ModelFile } from '../../model/model-file.ts';
import { hashModel } from '../../model/model-hash.ts';
import { unreadable } from '../../model/model-shard.ts';
import { cutSlice } from '../../model/slice-cutter.ts';
import { readSliceIdentity } from '../../model/slice-identity.ts';
import { planSlice } from '../../model/slice-plan.ts';
import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { stopWord, type SliceTask, type TaskNews, type TaskResult } from './slice-task.ts';

const port = present(parentPort, 'this file runs as a worker thread');
/** Between two pieces of news about progress. */
const newsMs = 100;

const stopping = new AbortController();
port.on('message', (word: unknown) => {
  if (word === stopWord) stopping.abort(new P4Error('CANCELLED', { by: 'the caller' }));
});

let saidAtMs = -Infinity;
const say = (news: TaskNews): void => {
  port.postMessage(news);
};

function progress(doneBytes: number, totalBytes: number): void {
  const now = performance.now();
  if (now - saidAtMs < newsMs) return;
  saidAtMs = now;
  say({ kind: 'progress', doneBytes, totalBytes });
}

async function run(task: SliceTask): Promise<TaskResult> {
  const { signal } = stopping;
  switch (task.kind) {
    case 'verify':
      await verify(task);
      return { kind: 'verify', value: null };
    case 'describe': {
      const model = await openFile(task.path);
      const onProgress = (done: number): void => {
        progress(done, model.bytes);
      };
      const modelHash = await hashModel(model, { cachePath: task.hashCachePath, signal, onProgress });
      return { kind: 'describe', value: describeModel(model, modelHash, task.slices) };
    }
    case 'cut': {
      const model = await openFile(task.path);
      const modelHash = await hashModel(model, { cachePath: task.hashCachePath, signal });
      const plan = planSlice(model, modelHash, task.layers);
      if (plan.id !== task.sliceId) throw new P4Error('MODEL_CHANGED', { file: task.path });
      const onProgress = (done: number): void => {
        progress(done, plan.bytes);
      };
      const { id, bytes } = await cutSlice({ model, plan, folder: task.folder, signal, onProgress });
      return { kind: 'cut', value: { sliceId: id, bytes: String(bytes) } };
    }
  }
}

/** A pipe would be waited for without end. */
async function openFile(path: string): Promise<ModelFile> {
  const found = await stat(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  if (!found.isFile()) throw unreadable(path, 'it is no file');
  return openModel(path);
}

async function verify({ path, sliceId, sha256 }: Extract<SliceTask, { kind: 'verify' }>): Promise<void> {
  const found = await fileHash(path, { signal: stopping.signal });
  if (found !== sha256) throw new P4Error('SLICE_DAMAGED', { sliceId, found, expected: sha256 });
  const identity = await readSliceIdentity(path);
  if (identity.sliceId !== sliceId)
    throw new P4Error('SLICE_DAMAGED', { sliceId, found: `the slice ${identity.sliceId}`, expected: sliceId });
}

// Whoever starts this thread hands it a task.
run(workerData as SliceTask)
  .then(
    (result) => {
      say({ kind: 'done', result });
    },
    (error: unknown) => {
      if (!(error instanceof P4Error)) throw error;
      say({ kind: 'failed', code: error.code, facts: error.facts });
    },
  )
  .finally(() => {
    port.close();
  });
