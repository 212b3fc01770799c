/** Whether Prometheus gets at the agents: what it says of its targets is held against what it was given. */
import type { HostName } from '../../../protocol/ids.ts';
import { addressText } from '../../../protocol/net-address.ts';
import type { ScrapedTarget } from './prometheus-api.ts';
import type { Target } from './targets.ts';

export interface TargetHealth {
  readonly host: HostName;
  readonly health: ScrapedTarget['health'];
  /** Why it is not up, empty where it is. */
  readonly why: string;
}

/** One for each of ours, in their order. An address that a host had before does not count. */
export const targetHealth = (ours: readonly Target[], scraped: readonly ScrapedTarget[]): readonly TargetHealth[] =>
  ours.map(({ host, ...at }) => {
    const found = scraped.find((each) => each.host === host && each.address === addressText(at));
    if (found === undefined) return { host, health: 'unknown', why: 'Prometheus does not have it among its targets' };
    const { health, lastError } = found;
    return { host, health, why: health === 'up' ? '' : lastError === '' ? 'it was not scraped yet' : lastError };
  });

/** Those that are waited for: hosts that were not deployed to now may be off. */
export const awaited = (found: readonly TargetHealth[], inRun: ReadonlySet<HostName>): readonly TargetHealth[] =>
  found.filter(({ host, health }) => health !== 'up' && inRun.has(host));
