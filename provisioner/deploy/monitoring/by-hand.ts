/** What is left to do by hand on the monitoring host, in words: pure. */
import { monitoringLayout } from './monitoring-layout.ts';
import { prometheusLines } from './monitoring-files.ts';
import type { MonitoringWay } from './monitoring-way.ts';

export interface HandWork {
  readonly why: string;
  readonly lines: readonly string[];
}

/** `null` where nothing is. */
export function handWork(way: MonitoringWay): HandWork | null {
  const { folder, exampleConfig, group, unit } = monitoringLayout;
  switch (way.kind) {
    case 'whole':
      return null;
    case 'own-config':
      if (way.readsOurs) return null;
      return {
        why: `its ${way.path} is somebody's own and stays as it is`,
        lines: [`These lines have to go into it; then \`systemctl reload ${unit}\`:`, ...prometheusLines()],
      };
    case 'files':
      return {
        why: `Prometheus is not set up: ${way.why}`,
        lines: [
          `What one needs is in ${folder}. Start Prometheus 2.42 or newer with`,
          `  --config.file=${exampleConfig}`,
          `or put the job and the rules of that file into its own. monitor.key is for the group ${group}: where there is`,
          'none, make it, have Prometheus run in it, and deploy again.',
        ],
      };
  }
}
