/** Where things of the monitoring are on its host. */
import { hostLayout } from '../../host-layout.ts';

const folder = `${hostLayout.configuration}/prometheus`;
const dropInFolder = `${hostLayout.units}/prometheus.service.d`;

/**
 * What Prometheus reads of ours is in one folder of our own, whatever Prometheus the host has: a package that is purged
 * leaves nothing behind, and `--remove` takes the folder away whole.
 */
export const monitoringLayout = {
  folder,
  rules: `${folder}/rules`,
  targets: `${folder}/targets.json`,
  authority: `${folder}/authority.crt`,
  certificate: `${folder}/monitor.crt`,
  key: `${folder}/monitor.key`,
  /** A whole configuration, for a Prometheus that is set up by hand. */
  exampleConfig: `${folder}/prometheus.yml`,
  /** The package's configuration, where ours has replaced it. */
  packageConfig: `${folder}/prometheus.yml.package`,
  /** Changed whenever Prometheus was told to read its configuration again. */
  rereadMark: `${folder}/reread`,
  /** Debian's package, and what it puts in place. */
  package: 'prometheus',
  unit: 'prometheus.service',
  group: 'prometheus',
  config: '/etc/prometheus/prometheus.yml',
  arguments: '/etc/default/prometheus',
  dropInFolder,
  dropIn: `${dropInFolder}/50-p4.conf`,
} as const;

const grafanaFolder = `${hostLayout.configuration}/grafana`;

/** Of Grafana's own package, but for our folder. */
export const grafanaLayout = {
  folder: grafanaFolder,
  dashboards: `${grafanaFolder}/dashboards`,
  configuration: '/etc/grafana',
  dataSource: '/etc/grafana/provisioning/datasources/p4.yaml',
  provider: '/etc/grafana/provisioning/dashboards/p4.yaml',
  unit: 'grafana-server.service',
  group: 'grafana',
} as const;

/** What the first line of a configuration of ours begins with: a file without it is somebody else's. */
export const configMark = "# Made by p4's deploy";
