/** What stages compute with, in words and as JSON. */
import { unreachable } from '../../protocol/assert.ts';
import { cpusText } from '../../protocol/inventory.ts';
import type { CpuOrigin, MachineRoom, StageCpus } from './allotment.ts';

/** `4 threads on CPUs 0-3 (chosen: 8 cores, 1 for the agent, 2 stages)` */
export const stageCpusText = ({ threads, cpus, origin }: StageCpus): string => {
  const set = cpus === null ? '' : ` on CPU${isOne(cpus) ? '' : 's'} ${cpusText(cpus)}`;
  return `${counted(threads, 'thread')}${set} (${originText(origin)})`;
};

const isOne = (cpus: NonNullable<StageCpus['cpus']>): boolean => /^[0-9]+$/.test(cpusText(cpus));
const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? '' : 's'}`;

function originText(origin: CpuOrigin): string {
  switch (origin.kind) {
    case 'stands':
      return 'as it stands';
    case 'gpu':
      return 'its layers are on a GPU';
    case 'decided':
      return decidedText(origin);
    default:
      return unreachable(origin);
  }
}

function decidedText({ chosen, room }: Extract<CpuOrigin, { kind: 'decided' }>): string {
  switch (chosen) {
    case 'nothing':
      return 'as the plan says';
    case 'cpus':
      return `CPUs chosen: ${roomText(room)}`;
    case 'threads':
    case 'both':
      return `chosen: ${roomText(room)}`;
    default:
      return unreachable(chosen);
  }
}

const roomText = ({ cores, taken, forAgent, stages }: MachineRoom): string =>
  [
    counted(cores, 'core'),
    ...(taken === 0 ? [] : [`${taken} taken`]),
    ...(forAgent === 0 ? [] : [`${forAgent} for the agent`]),
    counted(stages, 'stage'),
  ].join(', ');

/** `chosen`: what the plan left open; `cpus` is empty for all that the host gives. */
export const stageCpusJson = ({ threads, cpus, origin }: StageCpus): object => ({
  threads,
  cpus: cpusText(cpus ?? []),
  from: origin.kind,
  ...(origin.kind === 'decided' ? { chosen: origin.chosen, ...origin.room } : {}),
});
