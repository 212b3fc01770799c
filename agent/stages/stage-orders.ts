/**
 * How an agent without rights of its own has units of stages started and stopped.
 *
 * With polkit a rule lets it ask systemd. Without, it puts an empty file called `<verb>.<instance>` into a folder that a
 * path unit of root watches; the name is the whole request, and it is served when the file is gone. Both only pass the order
 * on: how a stage fares is told by its folder.
 */
import { execFile } from 'node:child_process';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { StageUnits } from '../../protocol/agent-config.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { awaitInFolder } from './folder-watch.ts';
import { unitName } from './unit-files.ts';

export interface StageOrders {
  unit(instance: string): string;
  /** @throws STAGE_UNIT_REFUSED when the order is not taken */
  start(instance: string): Promise<void>;
  /** Politely, then by force; the unit may be gone already. @throws STAGE_UNIT_REFUSED */
  stop(instance: string): Promise<void>;
  /** Takes back what a former agent ordered and nobody has served. */
  clear(): void;
}

export function stageOrders({ template, privileges }: StageUnits): StageOrders {
  const unit = (instance: string): string => unitName(template, instance);
  switch (privileges.kind) {
    case 'polkit':
      return {
        unit,
        start: (instance) => askSystemd('start', unit(instance)),
        stop: (instance) => askSystemd('stop', unit(instance)),
        clear: () => undefined,
      };
    case 'request-folder': {
      const { folder } = privileges;
      return {
        unit,
        start: (instance) => request(folder, `start.${instance}`),
        stop: (instance) => request(folder, `stop.${instance}`),
        clear: () => {
          for (const name of readdirSync(folder)) rmSync(join(folder, name), { force: true, recursive: true });
        },
      };
    }
  }
}

function askSystemd(verb: 'start' | 'stop', unit: string): Promise<void> {
  const orders = ['--no-block', '--no-ask-password', '--quiet', verb, unit];
  return new Promise((resolve, reject) => {
    execFile('systemctl', orders, { timeout: limits.stageOrderMs }, (error, _stdout, stderr) => {
      if (error === null) resolve();
      else reject(refused(unit, stderr.trim() === '' ? error.message : stderr.trim()));
    });
  });
}

async function request(folder: string, name: string): Promise<void> {
  const path = join(folder, name);
  try {
    writeFileSync(path, '', { mode: 0o600 });
  } catch (cause) {
    throw refused(name, cause instanceof Error ? cause.message : String(cause), cause);
  }
  const taken = await awaitInFolder(
    folder,
    () => (readdirSync(folder).includes(name) ? null : true),
    limits.stageOrderMs,
  );
  if (taken !== null) return;
  rmSync(path, { force: true });
  throw refused(name, `nobody took the request out of ${folder} within ${limits.stageOrderMs} ms`);
}

const refused = (unit: string, reason: string, cause?: unknown): P4Error =>
  new P4Error('STAGE_UNIT_REFUSED', { unit, reason }, cause);
