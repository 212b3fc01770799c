/** What a stage's unit writes into the stage's folder, and its name: decided here, read elsewhere. */
import { assert } from '../../protocol/assert.ts';
import type { StageExit } from './stage-launcher.ts';

/** Name of a stage's unit below its template, and of its folder: `<digits of the load>.<node>.<incarnation>`. */
export const isInstanceName = (name: string): boolean => /^[0-9a-f]{8}\.[0-9]{1,4}\.[0-9]{1,10}$/.test(name);

export function unitName(template: string, instance: string): string {
  assert(isInstanceName(instance), 'an instance has the form that privileges are given for');
  return `${template}@${instance}.service`;
}

/** A process number; `null` for what is none, or not yet whole. */
export function pidOf(text: string): number | null {
  const [, digits] = /^([1-9][0-9]{0,9})\n$/.exec(text) ?? [];
  return digits === undefined ? null : Number(digits);
}

export interface UnitEnd extends Omit<StageExit, 'lastWords'> {
  /** systemd's word: `success`, `exit-code`, `signal`, `timeout`, … */
  readonly result: string;
}

/** How a unit ended, from what `stage-end` wrote; `null` for what it did not write. */
export function unitEndOf(text: string): UnitEnd | null {
  const [, result, how, what] = /^([a-z-]+) (exited|killed|dumped|none) ([A-Z0-9a-z+-]+)\n$/.exec(text) ?? [];
  if (result === undefined || what === undefined) return null;
  if (how === 'exited' && /^[0-9]{1,3}$/.test(what)) return { result, status: Number(what), signal: null };
  const isSignal = how === 'killed' || how === 'dumped';
  return { result, status: null, signal: isSignal ? `SIG${what}` : null };
}

/** A unit's end in the words of an error. */
export function endFacts({ result, status, signal }: UnitEnd): { readonly exit: string; readonly result: string } {
  return { exit: signal ?? (status === null ? 'none' : `status ${status}`), result };
}

/** Whether the control groups of a process, as `/proc/<pid>/cgroup` has them, are those of a unit. */
export const isInUnit = (cgroups: string, unit: string): boolean =>
  cgroups.split('\n').some((line) => line.endsWith(`/${unit}`) || line.includes(`/${unit}/`));
