/**
 * Stages of a former agent, found by their folders: units live on when their agent is killed or restarted.
 *
 * Those that live are taken up by their handles; what is left of the others goes.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { Log } from '../log.ts';
import { awaitInFolder } from './folder-watch.ts';
import { exitFileName, pidFileName, removeStageFolder } from './stage-folder.ts';
import type { StageOrders } from './stage-orders.ts';
import { read, signalUnit } from './stage-unit.ts';
import { isInstanceName, isInUnit, pidOf, unitEndOf } from './unit-files.ts';

export interface FormerUnit {
  readonly instance: string;
  readonly folder: string;
  /** 0 where its unit never had a process. */
  readonly pid: number;
  /** `ended`: only its folder is left. */
  readonly state: 'lives' | 'starting' | 'ended';
}

export function formerUnits(runtimeFolder: string, orders: StageOrders): readonly FormerUnit[] {
  const names = readdirSync(runtimeFolder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return names.filter(({ name }) => isInstanceName(name)).map(({ name }) => formerUnit(runtimeFolder, name, orders));
}

function formerUnit(runtimeFolder: string, instance: string, orders: StageOrders): FormerUnit {
  const folder = join(runtimeFolder, instance);
  const pid = pidOf(read(join(folder, pidFileName))) ?? 0;
  const stage = { instance, folder, pid };
  if (unitEndOf(read(join(folder, exitFileName))) !== null) return { ...stage, state: 'ended' };
  if (pid === 0) return { ...stage, state: 'starting' };
  const lives = isInUnit(read(`/proc/${pid}/cgroup`), orders.unit(instance));
  return { ...stage, state: lives ? 'lives' : 'ended' };
}

/** Resolves when the unit is gone. @throws STAGE_UNIT_REFUSED when one that may be starting cannot be stopped */
export async function endFormerUnit(stage: FormerUnit, orders: StageOrders, log: Log): Promise<void> {
  const { instance, folder, pid, state } = stage;
  if (state !== 'ended') {
    log({ event: 'former-stage-ending', unit: orders.unit(instance), pid });
    await endUnit(stage, orders);
  }
  removeStageFolder(folder);
}

async function endUnit({ instance, folder, pid, state }: FormerUnit, orders: StageOrders): Promise<void> {
  const unit = orders.unit(instance);
  const ended = (): true | null => (unitEndOf(read(join(folder, exitFileName))) === null ? null : true);
  try {
    await orders.stop(instance);
  } catch (error) {
    if (!(error instanceof P4Error) || state !== 'lives') throw error;
    // What runs as the agent's own user it may signal itself.
    signalUnit(pid, unit, 'SIGTERM');
  }
  // A unit that was still to start is dropped without a word.
  const withinMs = state === 'lives' ? limits.stageStopMs : limits.stageExitMs;
  if ((await awaitInFolder(folder, ended, withinMs)) !== null) return;
  if (signalUnit(pid, unit, 'SIGKILL')) await awaitInFolder(folder, ended, limits.stageExitMs);
}
