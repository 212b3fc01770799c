/**
 * Stages as units of systemd, instances of a template: they live on when their agent ends.
 *
 * The instance is the name of the stage's folder. All that a stage is to know, its settings from the plan among it, it is
 * told on its control socket; nothing of it is written down (G4), and no unit or environment differs between stages.
 */
import { basename } from 'node:path';

import type { Log } from '../log.ts';
import { endFormerStage, formerStages } from './former-stages.ts';
import { makeStageFolder, removeStageFolder } from './stage-folder.ts';
import type { StageHandle, StageLauncher, StageSpec } from './stage-launcher.ts';
import type { StageOrders } from './stage-orders.ts';
import { StageUnit } from './stage-unit.ts';

export class SystemdLauncher implements StageLauncher {
  readonly outlivesAgent = true;
  readonly #orders: StageOrders;
  readonly #log: Log;

  constructor(orders: StageOrders, log: Log) {
    this.#orders = orders;
    this.#log = log;
  }

  async clear(runtimeFolder: string): Promise<void> {
    this.#orders.clear();
    const former = formerStages(runtimeFolder, this.#orders);
    await Promise.all(former.map((stage) => endFormerStage(stage, this.#orders, this.#log)));
  }

  async start(spec: StageSpec): Promise<StageHandle> {
    await makeStageFolder(spec.folder);
    const instance = basename(spec.folder);
    const unit = new StageUnit({ spec, instance, orders: this.#orders });
    try {
      await this.#orders.start(instance);
    } catch (error) {
      unit.release();
      removeStageFolder(spec.folder);
      throw error;
    }
    try {
      await unit.started();
    } catch (error) {
      // It may still come: then it is not wanted any more.
      void unit.stop();
      throw error;
    }
    return unit;
  }
}
