/** What a plan says of a stage's threads and CPUs. */
import type { CpuRange } from '../../protocol/inventory.ts';
import { layerCount, type StagePlan } from '../../protocol/plan.ts';

export const writtenCpus = ({ confinement }: StagePlan): readonly CpuRange[] | null => confinement?.cpus ?? null;

/** Whether no layer of it is computed by CPUs. */
export const isOnGpu = ({ device, layers }: StagePlan): boolean =>
  device.kind === 'gpu' && device.layers >= layerCount(layers);

export const threadSum = (stages: readonly { readonly threads: number }[]): number =>
  stages.reduce((sum, { threads }) => sum + threads, 0);
