/** A plan's model, wherever its file is: what the plan is checked against, and the slices that its stages load. */
import { present } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import { sliceId, type HostName, type SliceId } from '../protocol/ids.ts';
import { layersText, type LayerRange, type Plan } from '../protocol/plan.ts';
import type { ModelDescription, SliceDescription } from '../protocol/slice-messages.ts';
import { legalCuts, sliceFault } from '../model/layer-cut.ts';
import { sliceMemory, type SliceMemory } from '../model/memory-estimate.ts';
import { openModel, type ModelFile } from '../model/model-file.ts';
import { hashModel } from '../model/model-hash.ts';
import { planSlice, type SlicePlan } from '../model/slice-plan.ts';
import type { CommandContext } from './command.ts';
import type { FleetConnection } from './fleet-connection.ts';
import { bytesText } from './text-table.ts';

/** What a plan's layers and context are held against. */
export interface ModelShape {
  readonly architecture: string;
  readonly layers: number;
  readonly contextTokens: number;
  /** Layers after which it may be cut in two. */
  readonly cutsAfter: readonly number[];
  /** Of each stage of the plan: why its layers make no slice, or `null`. */
  readonly sliceFaults: readonly (string | null)[];
}

/** The slice of one stage. */
export interface PlannedSlice {
  readonly id: SliceId;
  readonly layers: LayerRange;
  /** Of its file. */
  readonly bytes: number;
  readonly memory: SliceMemory;
}

export type PlanModel = OperatorModel | HostsModel;

/** The file is here. */
export interface OperatorModel {
  readonly kind: 'operator';
  readonly file: ModelFile;
  readonly shape: ModelShape;
}

/** Every host of the plan has the file. */
export interface HostsModel {
  readonly kind: 'hosts';
  readonly path: string;
  readonly shape: ModelShape;
  readonly description: ModelDescription;
}

/** @throws what `openModel` throws */
export async function openOperatorModel(path: string, plan: Plan): Promise<OperatorModel> {
  const file = await openModel(path);
  const { architecture, layers, contextTokens } = file;
  const sliceFaults = plan.stages.map((stage) => sliceFault(file, stage.layers));
  return {
    kind: 'operator',
    file,
    shape: { architecture, layers, contextTokens, cutsAfter: legalCuts(file), sliceFaults },
  };
}

/** What every host says of the file, hashed there. */
export interface HostsModelOrder {
  readonly plan: Plan;
  readonly hosts: readonly HostName[];
  readonly fleet: FleetConnection;
}

/** @throws MODEL_DIFFERS; what an agent answers */
export async function openHostsModel(order: HostsModelOrder, context: CommandContext): Promise<HostsModel> {
  const { plan, hosts } = order;
  const done = new Map<HostName, number>();
  const total = new Map<HostName, number>();
  const onProgress = (host: HostName, doneBytes: number, totalBytes: number): void => {
    done.set(host, doneBytes);
    total.set(host, totalBytes);
    const sum = (counts: ReadonlyMap<HostName, number>): number =>
      [...counts.values()].reduce((all, one) => all + one, 0);
    context.terminal.progress(
      `hashing the model on ${total.size} hosts, ${bytesText(sum(total))}`,
      sum(done) / sum(total),
    );
  };
  const descriptions = await Promise.all(hosts.map((host) => describeOn(order, host, { context, onProgress })));
  context.terminal.endProgress();
  requireOneModel(plan.model, hosts, descriptions);
  const description = present(descriptions[0], 'a plan has a host');
  return {
    kind: 'hosts',
    path: plan.model,
    description,
    shape: { ...description, sliceFaults: description.slices.map(({ fault }) => (fault === '' ? null : fault)) },
  };
}

interface DescribeOptions {
  readonly context: CommandContext;
  readonly onProgress: (host: HostName, doneBytes: number, totalBytes: number) => void;
}

async function describeOn(
  { plan, fleet }: HostsModelOrder,
  host: HostName,
  { context, onProgress }: DescribeOptions,
): Promise<ModelDescription> {
  const request = { path: plan.model, slices: plan.stages.map(({ layers }) => layers) };
  const options = { deadlineMs: null, signal: context.signal };
  try {
    for await (const news of fleet.client(host).stream(['Agent', 'DescribeModel'], request, options)) {
      if (news.news === 'progress') onProgress(host, Number(news.progress.doneBytes), Number(news.progress.totalBytes));
      else if (news.news === 'model') return news.model;
    }
  } catch (error) {
    if (error instanceof P4Error && error.facts['host'] === undefined)
      throw new P4Error(error.code, { host, ...error.facts }, error);
    throw error;
  }
  throw new P4Error('RPC_FAILED', { host, method: 'Agent.DescribeModel', why: 'the stream ended without the model' });
}

/** One path may be another file on each host; the hash tells. @throws MODEL_DIFFERS */
export function requireOneModel(
  path: string,
  hosts: readonly HostName[],
  descriptions: readonly ModelDescription[],
): void {
  if (new Set(descriptions.map(({ modelHash }) => modelHash)).size <= 1) return;
  const hashes = hosts.map((host, index) => `${host} has ${descriptions[index]?.modelHash ?? 'none'}`);
  throw new P4Error('MODEL_DIFFERS', { path, hashes });
}

export interface SlicePlanning {
  readonly plan: Plan;
  readonly model: PlanModel;
  /** Remembers the hashes of files by path, size and time. */
  readonly hashCachePath: string;
}

/** The slices of a plan without faults, in ring order; an operator's model is hashed for that. */
export async function plannedSlices(order: SlicePlanning, context: CommandContext): Promise<readonly PlannedSlice[]> {
  const { plan, model } = order;
  switch (model.kind) {
    case 'operator': {
      const plans = await operatorSlicePlans(order, model, context);
      return plans.map((slice) => ({
        ...{ id: slice.id, layers: slice.range, bytes: slice.bytes },
        memory: sliceMemory(model.file, slice),
      }));
    }
    case 'hosts':
      return plan.stages.map(({ layers, index }) =>
        sliceOf(layers, present(model.description.slices[index], 'each stage was asked about')),
      );
  }
}

/** How an operator's model is cut. @throws what `hashModel` throws */
export async function operatorSlicePlans(
  { plan, hashCachePath }: Omit<SlicePlanning, 'model'>,
  { file }: OperatorModel,
  { terminal, signal }: CommandContext,
): Promise<readonly SlicePlan[]> {
  const modelHash = await hashModel(file, {
    cachePath: hashCachePath,
    signal,
    onProgress: (bytes) => {
      terminal.progress(`hashing the model, ${bytesText(file.bytes)}`, bytes / file.bytes);
    },
  });
  terminal.endProgress();
  return plan.stages.map(({ layers }) => planSlice(file, modelHash, layers));
}

function sliceOf(layers: LayerRange, { sliceId: id, bytes, memory, fault }: SliceDescription): PlannedSlice {
  const found = memory ?? null;
  if (found === null)
    throw new P4Error('RPC_FAILED', {
      method: 'Agent.DescribeModel',
      why: `no slice of ${layersText(layers)}: ${fault}`,
    });
  const { weightBytes, headerBytes, ...counts } = found;
  return {
    id: sliceId(id),
    layers,
    bytes: Math.min(Number(bytes), Number.MAX_SAFE_INTEGER),
    memory: { weightBytes: Number(weightBytes), headerBytes: Number(headerBytes), ...counts },
  };
}

/** What layers and cuts a plan may have, in the words of `checkPlanLayers`. */
export const planLayersOf = ({ architecture, layers, contextTokens, cutsAfter }: ModelShape) => ({
  layerCount: layers,
  legalCuts: cutsAfter.map((layer) => layer + 1),
  reason: cutsAfter.length === layers - 1 ? null : `others would not compute what the whole ${architecture} model does`,
  trainedContextTokens: contextTokens,
});
