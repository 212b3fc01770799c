/** How much of the monitoring is deploy's to do on its host: pure, from what the host has. */
import { inventoryDefaults } from '../../../protocol/inventory-defaults.ts';
import type { MonitoringFacts } from './monitoring-facts.ts';

export type MonitoringWay =
  /** Debian's Prometheus, configured by deploy. */
  | { readonly kind: 'whole'; readonly installs: boolean }
  /** Debian's Prometheus, with a configuration that somebody wrote: it stays as it is. */
  | { readonly kind: 'own-config'; readonly installs: boolean; readonly path: string; readonly readsOurs: boolean }
  /** Files alone: the host has no Prometheus that deploy could set up. */
  | { readonly kind: 'files'; readonly why: string };

export function monitoringWay({ prometheus, config }: MonitoringFacts): MonitoringWay {
  switch (prometheus.kind) {
    case 'foreign':
      return { kind: 'files', why: "its Prometheus is not Debian's package" };
    case 'missing':
      return {
        kind: 'files',
        why:
          prometheus.why === 'no-apt'
            ? "it has no Prometheus, and no apt-get to install Debian's"
            : 'it has no Prometheus, and its apt-get knows no package prometheus (apt-get update there may help)',
      };
    case 'installed':
    case 'installable': {
      const installs = prometheus.kind === 'installable';
      if (config.kind !== 'own') return { kind: 'whole', installs };
      return { kind: 'own-config', installs, path: config.path, readsOurs: config.readsOurs };
    }
  }
}

/** Where Prometheus listens: what its own arguments say counts. */
export const listenPort = ({ argumentsPort }: MonitoringFacts, inventoryPort: number): number =>
  argumentsPort ?? inventoryPort;

/** Whether Prometheus has to be told its port. */
export const wantsPort = (facts: MonitoringFacts, inventoryPort: number): boolean =>
  facts.argumentsPort === null && inventoryPort !== inventoryDefaults.prometheusPort;
