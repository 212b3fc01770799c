/** Samples as a status carries them: those of one ring, and of what belongs to none. */
import type { RingName } from '../../protocol/ids.ts';
import type { MetricSample, MetricSamples } from '../../protocol/messages.ts';
import type { Samples } from './samples.ts';

/** @param ring `null` for all */
export function sampleMessages(samples: Samples, ring: RingName | null): MetricSamples {
  const isWanted = ({ labels }: { readonly labels: Readonly<Record<string, string>> }): boolean =>
    ring === null || labels['ring'] === undefined || labels['ring'] === ring;
  const messages = samples.names.flatMap((name): readonly MetricSample[] => [
    ...samples
      .values(name)
      .filter(isWanted)
      .map(({ labels, value }) => ({ name, labels, value, count: '0' })),
    ...samples
      .histograms(name)
      .filter(isWanted)
      .map(({ labels, sum, count }) => ({ name, labels, value: sum, count: String(count) })),
  ]);
  return { atSeconds: samples.atMs / 1000, samples: messages };
}
