/**
 * A plan file read, and held against what it is to run on. Every fault is told at once, each with its line.
 */
import { open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

import { P4Error } from '../protocol/errors.ts';
import { faultsError, orderedFaults, type Fault } from '../protocol/fault.ts';
import type { HostName } from '../protocol/ids.ts';
import { pointerTo } from '../protocol/json-pointer.ts';
import { limits } from '../protocol/limits.ts';
import { planDigest } from '../protocol/plan-digest.ts';
import { parsePlan, type PlanDocument } from '../protocol/plan-document.ts';
import { checkPlanHosts, checkPlanLayers } from '../protocol/plan-fit.ts';
import { layersText, type Plan } from '../protocol/plan.ts';
import { planLayersOf, type ModelShape } from './plan-model.ts';

export interface OpenedPlan {
  /** Absolute. */
  readonly path: string;
  readonly document: PlanDocument;
  readonly plan: Plan;
  /** What tells this plan from another of the same ring (G6). */
  readonly digest: string;
  /** The model's file, or its first shard; absolute. */
  readonly modelPath: string;
}

/**
 * Reads a plan by itself: its form, and what can be said without its model and hosts.
 * @param path absolute
 * @throws PLAN_INVALID with every fault; PLAN_UNREADABLE
 */
export async function openPlan(path: string): Promise<OpenedPlan> {
  const reading = parsePlan(await readText(path), path);
  if (reading.kind === 'faults') throw faultsError('PLAN_INVALID', reading.faults);
  const { plan } = reading;
  return { path, document: reading, plan, digest: planDigest(plan), modelPath: resolve(dirname(path), plan.model) };
}

/**
 * Confirms that a plan fits its model and the fleet's hosts.
 * @throws PLAN_INVALID with every fault
 */
export function checkPlanFits({ document }: OpenedPlan, shape: ModelShape | null, hosts: readonly HostName[]): void {
  const faults = [...(shape === null ? [] : layerFaults(document, shape)), ...checkPlanHosts(document, hosts)];
  if (faults.length > 0) throw faultsError('PLAN_INVALID', orderedFaults(faults));
}

/** The plan's hosts, once each, in ring order: the first one has the head. */
export const ringHosts = (plan: Plan): readonly HostName[] => [...new Set(plan.stages.map(({ host }) => host))];

function layerFaults(document: PlanDocument, shape: ModelShape): readonly Fault[] {
  const faults = checkPlanLayers(document, planLayersOf(shape));
  // A slice between two legal cuts may still not stand by itself: one without a sliding-window layer, say.
  return faults.length > 0 ? faults : sliceFaults(document, shape);
}

const sliceFaults = (document: PlanDocument, shape: ModelShape): readonly Fault[] =>
  document.plan.stages.flatMap(({ index, layers }) => {
    const reason = shape.sliceFaults[index] ?? null;
    if (reason === null) return [];
    const path = pointerTo('stages', index, 'layers');
    const expected = `other layers: ${reason}`;
    return [{ ...document.locate(path), path, found: layersText(layers), expected }];
  });

/** Reads no more of a file than a plan may have, plus what shows that it is too long. */
async function readText(path: string): Promise<string> {
  try {
    const handle = await open(path, 'r');
    try {
      const buffer = Buffer.alloc(limits.documentBytes + 1);
      let length = 0;
      for (;;) {
        const { bytesRead } = await handle.read(buffer, length, buffer.length - length);
        length += bytesRead;
        if (bytesRead === 0 || length === buffer.length) return buffer.toString('utf8', 0, length);
      }
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw new P4Error('PLAN_UNREADABLE', { file: path, reason: cause instanceof Error ? cause.message : '' }, cause);
  }
}
