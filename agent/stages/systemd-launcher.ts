/**
 * Stages as units of systemd, instances of a template: they live on when their agent ends.
 *
 * The instance is the name of the stage's folder. All that a stage is to know, its settings from the plan among it, it is
 * told on its control socket; nothing of it is written down (G4), and no unit or environment differs between stages.
 */
import { basename } from 'node:path';

import { P4Error } from '../../protocol/errors.ts';
import type { Log } from '../log.ts';
import { endFormerUnit, formerUnits } from './former-stages.ts';
import { makeStageFolder, removeStageFolder } from './stage-folder.ts';
import type { StageHandle, StageLauncher, StageLine, StageSpec } from './stage-launcher.ts';
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

  async former(runtimeFolder: string, log: (folder: string, line: StageLine) => void): Promise<readonly StageHandle[]> {
    this.#orders.clear();
    const units = formerUnits(runtimeFolder, this.#orders);
    await Promise.all(
      units.filter(({ state }) => state !== 'lives').map((unit) => endFormerUnit(unit, this.#orders, this.#log)),
    );
    const living = units.filter(({ state }) => state === 'lives');
    const handles = await Promise.all(living.map(({ instance, folder }) => this.#takenUp(instance, folder, log)));
    return handles.filter((handle) => handle !== null);
  }

  /** `null` where it has ended meanwhile. */
  async #takenUp(
    instance: string,
    folder: string,
    log: (folder: string, line: StageLine) => void,
  ): Promise<StageHandle | null> {
    const relay = (line: StageLine): void => {
      log(folder, line);
    };
    const unit = new StageUnit({ spec: { folder, log: relay }, instance, orders: this.#orders, isFormer: true });
    try {
      await unit.started();
    } catch (error) {
      if (error instanceof P4Error && unit.gone.aborted) return null;
      throw error;
    }
    return unit;
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
