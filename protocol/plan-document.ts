/**
 * A plan file's text made a checked `Plan`, or every fault in it.
 *
 * The shape is checked by `plan-schema.ts`; here is what a schema cannot say. Each check reads what is legible, so that
 * one wrong value does not hide another's fault.
 */
import { assert } from './assert.ts';
import { cpuRangesOf } from './cpu-range.ts';
import { readDocument, type PlainDocument } from './document.ts';
import { orderedFaults, shownValue, type Fault } from './fault.ts';
import { hostName, nodeIndex, ringName } from './ids.ts';
import { cpusText } from './inventory.ts';
import { pointerTo } from './json-pointer.ts';
import { limits } from './limits.ts';
import { itemsOf, memberOf } from './plain-value.ts';
import { checkPlanFile, type PlanFile, type StageFile } from './plan-schema.ts';
import {
  defaultKeptPrefixes,
  layerCount,
  layersText,
  type Device,
  type LayerRange,
  type Plan,
  type StageConfinement,
  type StagePlan,
} from './plan.ts';
import { schemaFaults } from './schema-fault.ts';
import { orderTroubles } from './stage-order.ts';

/** A good plan, with the way back to the lines it was read from. */
export interface PlanDocument {
  readonly plan: Plan;
  /** See `PlainDocument`; pointers are those of the plan file, `/stages/1/layers`. */
  readonly locate: PlainDocument['locate'];
}

export type PlanReading =
  ({ readonly kind: 'plan' } & PlanDocument) | { readonly kind: 'faults'; readonly faults: readonly Fault[] };

/**
 * Never throws for any text.
 *
 * @param file the name that faults give the plan's file
 */
export function parsePlan(text: string, file: string): PlanReading {
  const { document, faults } = readDocument(text, file);
  if (document === null) return { kind: 'faults', faults: orderedFaults(faults) };
  const { value } = document;
  const hasShape = checkPlanFile(value);
  const all = [
    ...faults,
    ...schemaFaults(checkPlanFile.errors ?? [], document),
    ...layerFaults(document),
    ...deviceFaults(document),
    ...cpuFaults(document),
    ...contextFaults(document),
    ...reuseFaults(document),
  ];
  if (all.length > 0 || !hasShape) return { kind: 'faults', faults: orderedFaults(all) };
  return { kind: 'plan', plan: planOf(value), locate: document.locate };
}

/**
 * A plan as a plan file's value: what `parsePlan` reads back as the same plan. Every default is written out but that of
 * `wire`, which agents of protocol 2.0 do not know.
 */
export const planFileOf = (plan: Plan): PlanFile => ({
  ring: plan.ring,
  model: plan.modelOn === 'hosts' ? { path: plan.model, on: plan.modelOn } : plan.model,
  context: plan.contextTokens,
  sessions: plan.sessions,
  reuse: plan.keptPrefixes,
  kv: plan.kv,
  decode: plan.decode,
  ...(plan.wire === 'f32' ? {} : { wire: plan.wire }),
  deadline: plan.deadlineSeconds,
  stages: plan.stages.map(({ host, layers, device, threads, confinement }): StageFile => ({
    host,
    layers: layersText(layers),
    device: device.kind === 'cpu' ? 'cpu' : { gpu: device.index, layers: device.layers },
    threads,
    ...(confinement === undefined ? {} : confinementFile(confinement)),
  })),
});

const confinementFile = ({ cpus, memoryLimitBytes }: StageConfinement): Partial<StageFile> => ({
  ...(cpus === null ? {} : { cpus: cpusText(cpus) }),
  ...(memoryLimitBytes === null ? {} : { memory: { limitMiB: memoryLimitBytes / mebibyte } }),
});

const mebibyte = 1024 * 1024;

function planOf(file: PlanFile): Plan {
  return {
    ring: ringName(file.ring),
    ...(typeof file.model === 'string'
      ? { model: file.model, modelOn: 'operator' }
      : { model: file.model.path, modelOn: file.model.on }),
    contextTokens: file.context,
    sessions: file.sessions,
    keptPrefixes: file.reuse ?? defaultKeptPrefixes(file.sessions),
    kv: { keys: file.kv?.keys ?? 'f16', values: file.kv?.values ?? 'f16' },
    decode: file.decode ?? 'fast',
    wire: file.wire ?? 'f32',
    deadlineSeconds: file.deadline ?? limits.defaultDeadlineSeconds,
    stages: file.stages.map(stageOf),
  };
}

function stageOf(file: StageFile, index: number): StagePlan {
  const layers = layerRangeOf(file.layers);
  assert(layers !== null, 'the layers were checked');
  return {
    index: nodeIndex(index),
    host: hostName(file.host),
    layers,
    device: deviceOf(file.device ?? 'cpu', layers),
    threads: file.threads ?? 'auto',
    ...(file.cpus === undefined && file.memory?.limitMiB === undefined ? {} : { confinement: confinementOf(file) }),
  };
}

function confinementOf({ cpus, memory = {} }: StageFile): StageConfinement {
  const reading = cpus === undefined ? null : cpuRangesOf(String(cpus));
  assert(reading?.kind !== 'wrong', 'the CPUs were checked');
  return {
    cpus: reading?.ranges ?? null,
    memoryLimitBytes: memory.limitMiB === undefined ? null : memory.limitMiB * mebibyte,
  };
}

const deviceOf = (file: NonNullable<StageFile['device']>, layers: LayerRange): Device =>
  file === 'cpu' ? { kind: 'cpu' } : { kind: 'gpu', index: file.gpu, layers: file.layers ?? layerCount(layers) };

/** `first-last` or a single number; `null` for anything else. The order of the two is not looked at. */
function writtenLayers(value: unknown): LayerRange | null {
  const [, first, last = first] = /^([0-9]{1,4})(?:-([0-9]{1,4}))?$/.exec(layerText(value)) ?? [];
  return first === undefined ? null : { first: Number(first), last: Number(last) };
}

const layerText = (value: unknown): string =>
  typeof value === 'string' || (typeof value === 'number' && Number.isInteger(value)) ? String(value) : '';

/** A well-formed range of layers, `null` for anything else. */
function layerRangeOf(value: unknown): LayerRange | null {
  const range = writtenLayers(value);
  return range === null || range.first > range.last || range.last >= limits.modelLayers ? null : range;
}

function layerFaults(document: PlainDocument): readonly Fault[] {
  const written = itemsOf(memberOf(document.value, 'stages')).map((stage) => memberOf(stage, 'layers'));
  const at = (stage: number, found: string, expected: string): Fault => {
    const path = pointerTo('stages', stage, 'layers');
    return { ...document.locate(path), path, found, expected };
  };
  const malformed = written.flatMap((value, stage) => {
    const range = writtenLayers(value);
    if (range !== null && range.first > range.last)
      return [at(stage, layersText(range), `the lower layer first: ${range.last}-${range.first}`)];
    // A single number past the end is the schema's to tell.
    if (range !== null && range.last >= limits.modelLayers && typeof value === 'string')
      return [at(stage, layersText(range), `layers up to ${limits.modelLayers - 1}`)];
    return [];
  });
  const troubles = orderTroubles(written.map(layerRangeOf));
  return [...malformed, ...troubles.map(({ stage, found, expected }) => at(stage, found, expected))];
}

/** A GPU holds at most the layers of the slice. */
function deviceFaults(document: PlainDocument): readonly Fault[] {
  return itemsOf(memberOf(document.value, 'stages')).flatMap((stage, index) => {
    const range = layerRangeOf(memberOf(stage, 'layers'));
    const held = memberOf(memberOf(stage, 'device'), 'layers');
    if (range === null || typeof held !== 'number' || held <= layerCount(range)) return [];
    const path = pointerTo('stages', index, 'device', 'layers');
    const expected = `at most ${layerCount(range)}, the layers of the slice (${layersText(range)})`;
    return [{ ...document.locate(path), path, found: shownValue(held), expected }];
  });
}

/** What the pattern lets pass: CPUs that fall, or come twice. */
function cpuFaults(document: PlainDocument): readonly Fault[] {
  return itemsOf(memberOf(document.value, 'stages')).flatMap((stage, index) => {
    const cpus = memberOf(stage, 'cpus');
    if (typeof cpus !== 'string' || !/^[0-9,-]+$/.test(cpus)) return [];
    const reading = cpuRangesOf(cpus);
    if (reading.kind === 'ranges' || reading.expected.startsWith('a CPU or a range')) return [];
    const path = pointerTo('stages', index, 'cpus');
    return [{ ...document.locate(path), path, found: reading.found, expected: reading.expected }];
  });
}

/** All sessions share one KV cache, so its size is their product. */
function contextFaults(document: PlainDocument): readonly Fault[] {
  const context = memberOf(document.value, 'context');
  const sessions = memberOf(document.value, 'sessions');
  if (typeof context !== 'number' || typeof sessions !== 'number') return [];
  if (context > limits.contextTokens || sessions > limits.sessions || context * sessions <= limits.ringTokens)
    return [];
  const path = pointerTo('context');
  const found = `${context} tokens for each of ${sessions} sessions, ${context * sessions} in all`;
  return [{ ...document.locate(path), path, found, expected: `at most ${limits.ringTokens} in all` }];
}

/** A kept session has a sequence as an open one has. */
function reuseFaults(document: PlainDocument): readonly Fault[] {
  const sessions = memberOf(document.value, 'sessions');
  const reuse = memberOf(document.value, 'reuse');
  if (typeof sessions !== 'number' || typeof reuse !== 'number') return [];
  // Each by itself is the schema's to tell.
  if (sessions > limits.sessions || reuse >= limits.sessions || sessions + reuse <= limits.sessions) return [];
  const path = pointerTo('reuse');
  const found = `${reuse} kept and ${sessions} open sessions, ${sessions + reuse} in all`;
  return [{ ...document.locate(path), path, found, expected: `at most ${limits.sessions} in all` }];
}
