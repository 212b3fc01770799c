/**
 * Brings every host the slices of its stages that it lacks, and no others: sent from here, or cut there where the model is.
 *
 * Hosts whose agents use the operator's own folder have a slice as soon as it is cut.
 */
import { present } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import type { HostName, SliceId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { layersText, type Plan } from '../protocol/plan.ts';
import { openModel } from '../model/model-file.ts';
import { hashModel } from '../model/model-hash.ts';
import { slicePathIn } from '../model/slice-folder.ts';
import type { CommandContext } from './command.ts';
import type { FleetConnection } from './fleet-connection.ts';
import {
  operatorSlicePlans,
  type HostsModel,
  type OperatorModel,
  type PlanModel,
  type PlannedSlice,
} from './plan-model.ts';
import { cutSlices } from './prepared-slices.ts';
import { uploadSlice } from './slice-upload.ts';
import { bytesText } from './text-table.ts';
import { TransferProgress } from './transfer-progress.ts';

/** A slice that a host lacks. */
export interface MissingSlice {
  readonly host: HostName;
  readonly slice: PlannedSlice;
  /** Bytes of it that an earlier upload has left there. */
  readonly partBytes: number;
}

export interface DeliveryOrder {
  readonly plan: Plan;
  readonly model: PlanModel;
  readonly missing: readonly MissingSlice[];
  readonly fleet: FleetConnection;
  /** The operator's own, for slices that are cut here. */
  readonly slicesFolder: string;
  readonly hashCachePath: string;
}

/** What a host was given. */
export interface Delivered {
  readonly host: HostName;
  /** Over the network; 0 for what was cut there or lay there. */
  readonly sentBytes: number;
}

/** Each host's slices in ring order, each once. */
export function slicesByHost(
  plan: Plan,
  slices: readonly PlannedSlice[],
): ReadonlyMap<HostName, readonly PlannedSlice[]> {
  const byHost = new Map<HostName, PlannedSlice[]>();
  for (const { host, index } of plan.stages) {
    const slice = present(slices[index], 'each stage has a slice');
    const own = byHost.get(host) ?? [];
    if (!own.some(({ id }) => id === slice.id)) own.push(slice);
    byHost.set(host, own);
  }
  return byHost;
}

/** Asks every host for its slices. */
export async function missingSlices(
  fleet: FleetConnection,
  byHost: ReadonlyMap<HostName, readonly PlannedSlice[]>,
  signal: AbortSignal,
): Promise<readonly MissingSlice[]> {
  const options = { deadlineMs: limits.answerMs, signal };
  const answers = [...byHost].map(async ([host, own]): Promise<readonly MissingSlice[]> => {
    const request = { sliceIds: own.map(({ id }) => id) };
    const { slices } = await fleet.client(host).call(['Agent', 'SliceState'], request, options);
    return own.flatMap((slice, index) => {
      const state = slices[index];
      return state?.isPresent === true ? [] : [{ host, slice, partBytes: Number(state?.bytes ?? 0) }];
    });
  });
  return (await Promise.all(answers)).flat();
}

/** @throws the first failure; what came so far stays, for the next load to go on from */
export async function deliverSlices(order: DeliveryOrder, context: CommandContext): Promise<readonly Delivered[]> {
  const { missing, model } = order;
  if (missing.length === 0) return [];
  switch (model.kind) {
    case 'operator':
      return sendSlices(order, model, context);
    case 'hosts':
      await cutOnHosts(order, model, context);
      return [];
  }
}

async function sendSlices(
  order: DeliveryOrder,
  model: OperatorModel,
  context: CommandContext,
): Promise<readonly Delivered[]> {
  const { fleet, slicesFolder } = order;
  const wanted = new Set(order.missing.map(({ slice }) => slice.id));
  const plans = await operatorSlicePlans(order, model, context);
  await cutSlices({ model, plans: plans.filter(({ id }) => wanted.delete(id)), folder: slicesFolder }, context);
  // Where a host's folder is this one, its slices are there now.
  const missing = await missingSlices(fleet, groupByHost(order.missing), context.signal);
  const hashes = await fileHashes(order, missing, context);
  const progress = new TransferProgress(bytesByHost(missing));
  const sent = new Map<HostName, number>();
  await perHost({ missing, atOnce: limits.sliceUploads, signal: context.signal }, async ({ host, slice }, signal) => {
    const bytes = await uploadSlice({
      ...{ client: fleet.client(host), id: slice.id, bytes: slice.bytes, signal },
      path: slicePathIn(slicesFolder, slice.id),
      sha256: present(hashes.get(slice.id), 'every slice was hashed'),
      onProgress: (done) => {
        progress.place(host, slice.id, done);
        draw(context, progress, 'sending');
      },
      onSent: (count) => {
        progress.move(count, performance.now());
      },
    });
    sent.set(host, (sent.get(host) ?? 0) + bytes);
  });
  context.terminal.endProgress();
  return [...sent].map(([host, sentBytes]) => ({ host, sentBytes }));
}

/** Of the files that are to be sent: what the hosts compare with. */
async function fileHashes(
  { slicesFolder, hashCachePath }: DeliveryOrder,
  missing: readonly MissingSlice[],
  { terminal, signal }: CommandContext,
): Promise<ReadonlyMap<SliceId, string>> {
  const hashes = new Map<SliceId, string>();
  for (const { slice } of missing) {
    if (hashes.has(slice.id)) continue;
    const onProgress = (bytes: number): void => {
      terminal.progress(`hashing layers ${layersText(slice.layers)}, ${bytesText(slice.bytes)}`, bytes / slice.bytes);
    };
    const file = await openModel(slicePathIn(slicesFolder, slice.id));
    hashes.set(slice.id, await hashModel(file, { cachePath: hashCachePath, signal, onProgress }));
  }
  return hashes;
}

/** One slice after another on each host: cutting is bound by its disk. */
async function cutOnHosts(order: DeliveryOrder, model: HostsModel, context: CommandContext): Promise<void> {
  const { missing, fleet } = order;
  const progress = new TransferProgress(bytesByHost(missing));
  await perHost({ missing, atOnce: 1, signal: context.signal }, async ({ host, slice }, signal) => {
    const request = { path: model.path, layers: slice.layers, sliceId: slice.id };
    let cut = 0;
    for await (const news of fleet.client(host).stream(['Agent', 'CutSlice'], request, { deadlineMs: null, signal })) {
      if (news.news === 'cut') cut = slice.bytes;
      if (news.news !== 'progress') continue;
      const done = Number(news.progress.doneBytes);
      progress.move(Math.max(0, done - cut), performance.now());
      cut = done;
      progress.place(host, slice.id, done);
      draw(context, progress, 'cutting');
    }
    if (cut !== slice.bytes)
      throw new P4Error('RPC_FAILED', { host, method: 'Agent.CutSlice', why: 'no slice at the end' });
    progress.place(host, slice.id, cut);
  });
  context.terminal.endProgress();
}

const draw = ({ terminal }: CommandContext, progress: TransferProgress, verb: string): void => {
  terminal.progress(progress.text(verb, performance.now()), progress.fraction);
};

interface HostWork {
  readonly missing: readonly MissingSlice[];
  /** Slices that one host is brought at once. */
  readonly atOnce: number;
  readonly signal: AbortSignal;
}

/** All hosts at once; the first failure ends the others. */
async function perHost(
  { missing, atOnce, signal }: HostWork,
  bring: (one: MissingSlice, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const lanes = [...groupBy(missing, ({ host }) => host).values()].flatMap((own) => {
    const waiting = [...own];
    return Array.from({ length: Math.min(atOnce, own.length) }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await bring(next, either);
    });
  });
  const guarded = lanes.map((lane) =>
    lane.catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  const ends = await Promise.allSettled(guarded);
  signal.throwIfAborted();
  // The failure that ended the others is the one to tell.
  if (failed.signal.aborted) throw failed.signal.reason;
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

const groupByHost = (missing: readonly MissingSlice[]): ReadonlyMap<HostName, readonly PlannedSlice[]> =>
  new Map([...groupBy(missing, ({ host }) => host)].map(([host, own]) => [host, own.map(({ slice }) => slice)]));

const bytesByHost = (missing: readonly MissingSlice[]): ReadonlyMap<HostName, number> =>
  new Map(
    [...groupBy(missing, ({ host }) => host)].map(([host, own]) => [
      host,
      own.reduce((sum, { slice }) => sum + slice.bytes, 0),
    ]),
  );

function groupBy<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): ReadonlyMap<Key, readonly Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
