/**
 * The files that Prometheus and Grafana get, made of those in `grafana/` of the operator's checkout: rules and dashboards as
 * they are, configurations with what differs between fleets.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { parseDocument, stringify, type Document } from 'yaml';

import { configMark, monitoringLayout } from './monitoring-layout.ts';

/** Texts by file names. */
export type TextFiles = ReadonlyMap<string, string>;

export interface MonitoringFiles {
  readonly rules: TextFiles;
  readonly dashboards: TextFiles;
  /** Grafana's description of where dashboards are. */
  readonly provider: string;
}

export interface PrometheusSettings {
  /** Where it listens. */
  readonly port: number;
  readonly hasNodeExporter: boolean;
}

const sourceFolder = join(import.meta.dirname, '../../../../grafana');
const sourceText = (path: string): string => readFileSync(join(sourceFolder, path), 'utf8');

export function readMonitoringFiles(): MonitoringFiles {
  const within = (folder: string, ending: string): TextFiles => {
    const names = readdirSync(join(sourceFolder, folder)).filter((name) => name.endsWith(ending));
    return new Map(names.sort().map((name) => [name, sourceText(`${folder}/${name}`)]));
  };
  return {
    rules: within('rules', '.yml'),
    dashboards: within('dashboards', '.json'),
    provider: sourceText('provisioning/grafana/dashboards/p4.yaml'),
  };
}

/** A whole configuration: the fleet's job, and the two of the package's own. */
export function prometheusConfig(settings: PrometheusSettings): string {
  const document = template('provisioning/prometheus/prometheus.yml');
  for (const job of hostJobs(settings)) document.addIn(['scrape_configs'], document.createNode(job));
  return `${configMark}, which writes it anew; without this line it is yours, and stays as it is.\n${textOf(document)}`;
}

const hostJobs = ({ port, hasNodeExporter }: PrometheusSettings): readonly object[] => [
  job('prometheus', port),
  ...(hasNodeExporter ? [job('node', nodeExporterPort)] : []),
];

const job = (name: string, port: number): object => ({
  job_name: name,
  static_configs: [{ targets: [`localhost:${port}`] }],
});

const nodeExporterPort = 9100;

/** The lines of it that have to go into a configuration that is somebody's own. */
export function prometheusLines(): readonly string[] {
  const document = template('provisioning/prometheus/prometheus.yml');
  document.deleteIn(['global']);
  return textOf(document)
    .split('\n')
    .filter((line) => line.trim() !== '');
}

/** Grafana's way to Prometheus on the same host. */
export function dataSource(port: number): string {
  const document = template('provisioning/grafana/datasources/p4.yaml');
  document.setIn(['datasources', 0, 'url'], `http://127.0.0.1:${port}`);
  return textOf(document);
}

/** Without the lines that say where a file goes: they are for people who put it there. */
const template = (path: string): Document => parseDocument(sourceText(path).replace(/^(#.*\n)+/, ''));
const textOf = (document: Document): string => stringify(document, { lineWidth: 0 });

/** The unit's own start, with one argument more. */
export const portDropIn = (port: number): string => `# Made by p4's deploy: the port that the inventory says.
[Service]
ExecStart=
ExecStart=/usr/bin/prometheus $ARGS --web.listen-address=:${port}
`;

/** What differs where a configuration is tried out in another folder than it will have. */
export const inFolder = (text: string, folder: string): string => text.replaceAll(monitoringLayout.folder, folder);
