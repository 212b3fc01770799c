/** What the figures were taken on. */
import { availableParallelism, cpus, loadavg } from 'node:os';

export interface Machine {
  readonly cores: number;
  readonly processor: string;
  /** Means over the last minute. */
  readonly loadAtStart: number;
  readonly loadAtEnd: number;
}

export const loadNow = (): number => loadavg()[0] ?? 0;

export const machineNow = (loadAtStart: number): Machine => ({
  cores: availableParallelism(),
  processor: cpus()[0]?.model ?? 'unknown',
  loadAtStart,
  loadAtEnd: loadNow(),
});

export const machineLine = ({ cores, processor, loadAtStart, loadAtEnd }: Machine): string =>
  `${cores} cores (${processor}), load average ${loadAtStart.toFixed(1)} at the start and ${loadAtEnd.toFixed(1)} at ` +
  'the end. Speeds are those of this machine as busy as it was; the ratios within a round are what counts.';
