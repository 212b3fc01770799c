/**
 * What shall be on the monitoring host for Prometheus and Grafana, as an ordered list of resources: pure, from what the host
 * has, the fleet's targets and the files of the checkout. The order is the one in which changes are made.
 */
import type { TlsIdentity } from '../../../protocol/tls-identity.ts';
import type {
  AbsentResource,
  FileContent,
  FileResource,
  FolderResource,
  Ownership,
  Resource,
  UnitResource,
} from '../resource.ts';
import { resourceName } from '../resource.ts';
import { dataSource, portDropIn, prometheusConfig, type MonitoringFiles, type TextFiles } from './monitoring-files.ts';
import type { MonitoringFacts } from './monitoring-facts.ts';
import { configMark, grafanaLayout, monitoringLayout } from './monitoring-layout.ts';
import { listenPort, monitoringWay, wantsPort, type MonitoringWay } from './monitoring-way.ts';
import { targetsText, type Target } from './targets.ts';

export interface DesiredMonitoring {
  readonly facts: MonitoringFacts;
  /** What the inventory says. */
  readonly port: number;
  readonly files: MonitoringFiles;
  /** `null` while addresses are still to be measured. */
  readonly targets: readonly Target[] | null;
  /** Of the role `monitor`; `null` while there is none, which a run makes. */
  readonly identity: TlsIdentity | null;
}

const root: Ownership = { user: 'root', group: 'root' };

export function monitoringResources(desired: DesiredMonitoring): readonly Resource[] {
  const way = monitoringWay(desired.facts);
  return [
    ...(way.kind === 'files' ? [] : [{ kind: 'package', name: monitoringLayout.package } as const]),
    ...prometheusResources(desired, way),
    ...(desired.facts.grafana === null ? [] : grafanaResources(desired, desired.facts.grafana)),
  ];
}

function prometheusResources(desired: DesiredMonitoring, way: MonitoringWay): readonly Resource[] {
  const { folder, rules, exampleConfig } = monitoringLayout;
  const read = [
    ...textResources(rules, desired.files.rules, root),
    ...strangers(desired, rules, desired.files.rules),
    ...configResources(desired, way),
  ];
  const common = [folderAt(folder, root), folderAt(rules, root), ...fleetFiles(desired, way)];
  if (way.kind === 'files') return [...common, ...read];
  const dropIn = dropInResource(desired);
  return [
    ...common,
    ...read,
    { kind: 'absent', path: exampleConfig },
    dropIn,
    prometheusUnit(way, read.map(resourceName), [dropIn.path]),
  ];
}

/** Targets are read whenever they change, certificates whenever a connection is made: Prometheus has to be told of neither. */
function fleetFiles(desired: DesiredMonitoring, way: MonitoringWay): readonly FileResource[] {
  const { targets, identity, facts } = desired;
  const { authority, certificate, key } = monitoringLayout;
  const made: FileContent = { kind: 'made-in-run', why: 'its certificate is made in the run' };
  const pem = (text: string | undefined, isSecret: boolean): FileContent =>
    text === undefined ? made : { kind: 'bytes', bytes: Buffer.from(text), isSecret };
  // Without the group, root alone has the key: nobody knows which user Prometheus will be.
  const keyRights =
    way.kind === 'files' && !facts.hasGroup
      ? { mode: 0o600, owner: root }
      : { mode: 0o640, owner: { user: 'root', group: monitoringLayout.group } };
  return [
    { ...fileAt(authority, root), content: pem(identity?.authority, false) },
    { ...fileAt(certificate, root), content: pem(identity?.certificate, false) },
    { kind: 'file', path: key, ...keyRights, content: pem(identity?.key, true) },
    {
      ...fileAt(monitoringLayout.targets, root),
      content:
        targets === null
          ? { kind: 'made-in-run', why: 'addresses are measured in the run' }
          : textContent(targetsText(targets)),
    },
  ];
}

function configResources({ facts, port }: DesiredMonitoring, way: MonitoringWay): readonly FileResource[] {
  const { exampleConfig, config, packageConfig } = monitoringLayout;
  const { hasNodeExporter } = facts;
  const content = textContent(prometheusConfig({ port: listenPort(facts, port), hasNodeExporter }));
  switch (way.kind) {
    case 'files':
      return [{ ...fileAt(exampleConfig, root), content }];
    case 'own-config':
      return [];
    case 'whole': {
      const replaced = { keptAt: packageConfig, ownMark: configMark };
      return [{ ...fileAt(config, root), content, replaced }];
    }
  }
}

function dropInResource({ facts, port }: DesiredMonitoring): FileResource | AbsentResource {
  const { dropIn } = monitoringLayout;
  if (!wantsPort(facts, port)) return { kind: 'absent', path: dropIn };
  return { ...fileAt(dropIn, root), content: textContent(portDropIn(port)) };
}

const prometheusUnit = (
  way: MonitoringWay,
  names: readonly string[],
  readsAtStart: readonly string[],
): UnitResource => ({
  ...{ kind: 'unit', name: monitoringLayout.unit, readsAtStart },
  activity: way.kind === 'whole' ? 'runs' : 'as-it-is',
  rereads: { names, mark: monitoringLayout.rereadMark },
});

/** Grafana looks for changed dashboards by itself; what it is told of data sources and folders it reads when it starts. */
function grafanaResources(
  desired: DesiredMonitoring,
  { hasGroup }: NonNullable<MonitoringFacts['grafana']>,
): readonly Resource[] {
  const { folder, dashboards, provider, unit } = grafanaLayout;
  const owner: Ownership = hasGroup ? { user: 'root', group: grafanaLayout.group } : root;
  const { facts, port, files } = desired;
  const file = (path: string, text: string): FileResource => ({
    ...{ kind: 'file', path, owner, mode: hasGroup ? 0o640 : 0o644 },
    content: textContent(text),
  });
  const told: readonly FileResource[] = [
    file(grafanaLayout.dataSource, dataSource(listenPort(facts, port))),
    file(provider, files.provider),
  ];
  return [
    folderAt(folder, root),
    folderAt(dashboards, root),
    ...textResources(dashboards, files.dashboards, root),
    ...strangers(desired, dashboards, files.dashboards),
    ...told,
    { kind: 'unit', name: unit, activity: 'as-it-is', readsAtStart: told.map(resourceName), rereads: null },
  ];
}

const textResources = (folder: string, files: TextFiles, owner: Ownership): readonly FileResource[] =>
  [...files].map(([name, text]) => ({ ...fileAt(`${folder}/${name}`, owner), content: textContent(text) }));

/** Files of an earlier deployment: Prometheus and Grafana would go on reading them. */
const strangers = ({ facts }: DesiredMonitoring, folder: string, files: TextFiles): readonly AbsentResource[] =>
  facts.files
    .filter((path) => path.startsWith(`${folder}/`) && !files.has(path.slice(folder.length + 1)))
    .map((path) => ({ kind: 'absent', path }));

const folderAt = (path: string, owner: Ownership): FolderResource => ({
  ...{ kind: 'folder', path, mode: 0o755, owner },
  isOwnedThroughout: false,
});

const fileAt = (path: string, owner: Ownership): Omit<FileResource, 'content'> => ({
  ...{ kind: 'file', path, mode: 0o644, owner },
});

const textContent = (text: string): FileContent => ({ kind: 'bytes', bytes: Buffer.from(text), isSecret: false });
