/**
 * The units of a host and what belongs to them, as files: decided here, put in place elsewhere.
 *
 * The files of `units/` are the same on every host. What differs between hosts (CPUs, GPUs, ports, the state folder) is in
 * drop-ins, `50-host.conf`, made here. `units/README.md` explains them to an operator.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { StageSupervision } from '../../protocol/agent-config.ts';
import { assert } from '../../protocol/assert.ts';
import { cpusText, type CpuRange, type HostVariables } from '../../protocol/inventory.ts';
import { hostLayout } from '../host-layout.ts';

/** A file of a host. */
export interface HostFile {
  /** Absolute. */
  readonly path: string;
  readonly text: string;
  readonly mode: number;
  readonly owner: 'root' | 'p4';
  readonly group: 'root' | 'p4';
}

/** Why an agent may start stages: `polkit` where that reads rules in JavaScript (0.106 and later). */
export type StagePrivileges = 'polkit' | 'request-folder';

export interface UnitOptions extends Pick<HostVariables, 'stateFolder' | 'cpus' | 'gpus'> {
  readonly ports: Pick<HostVariables['ports'], 'agent' | 'metrics'>;
  /** Whether the host has GPUs that stages can use: only then stages and their agent may open the devices. */
  readonly hasGpus: boolean;
  readonly privileges: StagePrivileges;
}

const stageTemplate = 'p4-stage';
const scriptFolder = `${hostLayout.programs}/libexec`;
const sourceFolder = join(import.meta.dirname, '../../../units');

/** Every unit that a host may have of p4, for a look at what is to be stopped or removed; instances of stages apart. */
export const unitNames = [
  'p4-agent.service',
  'p4-stage@.service',
  'p4-stage-request.path',
  'p4-stage-request.service',
] as const;

/** The units that are enabled, and started by whoever deploys, in this order. Stages are started by their agent. */
export const startedUnits = (privileges: StagePrivileges): readonly string[] =>
  privileges === 'polkit' ? ['p4-agent.service'] : ['p4-stage-request.path', 'p4-agent.service'];

/** The folders that hold nothing but these files, for whoever removes them. */
export const unitFolders = [
  `${hostLayout.units}/p4-agent.service.d`,
  `${hostLayout.units}/p4-stage@.service.d`,
  scriptFolder,
] as const;

/** What an agent's configuration says of its stages on a host with these units. */
export function stageSupervision(privileges: StagePrivileges): StageSupervision & { readonly runtimeFolder: string } {
  const { runtime } = hostLayout;
  return {
    runtimeFolder: `${runtime}/stages`,
    stages: 'systemd',
    stageUnits: {
      template: stageTemplate,
      privileges:
        privileges === 'polkit' ? { kind: 'polkit' } : { kind: 'request-folder', folder: `${runtime}/requests` },
    },
  };
}

export function unitFiles(options: UnitOptions): readonly HostFile[] {
  assert(/^(\/[A-Za-z0-9_][A-Za-z0-9._-]*)+$/.test(options.stateFolder), 'a path without a meaning to systemd');
  const common = [
    unit('p4-agent.service'),
    unit('p4-stage@.service'),
    dropIn('p4-agent.service', agentDropIn(options)),
    dropIn('p4-stage@.service', stageDropIn(options)),
    script('stage-start'),
    script('stage-end'),
    script('p4'),
  ];
  switch (options.privileges) {
    case 'polkit':
      // Its folder is often closed to others; the daemon reads it as a user of its own.
      return [...common, rootFile(hostLayout.polkitRules, sourceText('50-p4.rules'))];
    case 'request-folder':
      return [...common, unit('p4-stage-request.path'), unit('p4-stage-request.service'), script('stage-request')];
  }
}

const unit = (name: (typeof unitNames)[number]): HostFile => rootFile(`${hostLayout.units}/${name}`, sourceText(name));
const dropIn = (name: (typeof unitNames)[number], text: string): HostFile =>
  rootFile(`${hostLayout.units}/${name}.d/50-host.conf`, text);
const script = (name: string): HostFile => ({ ...rootFile(`${scriptFolder}/${name}`, sourceText(name)), mode: 0o755 });
const rootFile = (path: string, text: string): HostFile => ({ path, text, mode: 0o644, owner: 'root', group: 'root' });

const sourceText = (name: string): string => readFileSync(join(sourceFolder, name), 'utf8');

function agentDropIn({ stateFolder, cpus, gpus, ports, hasGpus }: UnitOptions): string {
  const seesGpus = hasGpus && !(gpus.kind === 'these' && gpus.indexes.length === 0);
  return section('Service', [
    ...stateLines(stateFolder),
    ...cpuLines(cpus),
    // For the driver's own program, which tells what the metrics say of GPUs.
    ...(seesGpus ? gpuDeviceLines : []),
    // Nothing else is listened at. Kernels without this leave it out.
    'SocketBindDeny=any',
    `SocketBindAllow=tcp:${ports.agent}`,
    `SocketBindAllow=tcp:${ports.metrics}`,
  ]);
}

function stageDropIn({ stateFolder, cpus, gpus, hasGpus }: UnitOptions): string {
  return section('Service', [
    // Of the agent's state it sees the slices alone.
    ...homeLines(stateFolder),
    `TemporaryFileSystem=${stateFolder}:ro`,
    `BindReadOnlyPaths=-${stateFolder}/slices`,
    ...cpuLines(cpus),
    ...(hasGpus ? gpuLines(gpus) : ['PrivateDevices=yes', 'DevicePolicy=closed']),
  ]);
}

function stateLines(stateFolder: string): readonly string[] {
  const [, below] = /^\/var\/lib\/(.+)$/.exec(stateFolder) ?? [];
  const made = below === undefined ? [`ReadWritePaths=${stateFolder}`] : [`StateDirectory=${below}`];
  return [...homeLines(stateFolder), ...made, 'StateDirectoryMode=0700'];
}

/** A state folder in a home is the operator's choice: then homes are seen, and stay closed but for it. */
const homeLines = (stateFolder: string): readonly string[] =>
  /^\/(home|root|run\/user)\//.test(stateFolder) ? ['ProtectHome=read-only'] : [];

/** `AllowedCPUs` is a limit where the kernel has the controller; `CPUAffinity` holds everywhere, and threads are counted by it. */
const cpuLines = (cpus: readonly CpuRange[] | null): readonly string[] =>
  cpus === null ? [] : [`CPUAffinity=${cpusText(cpus)}`, `AllowedCPUs=${cpusText(cpus)}`];

const gpuDeviceLines = ['PrivateDevices=no', 'DevicePolicy=closed', 'DeviceAllow=char-nvidia* rw'] as const;

/**
 * The driver's devices, all of them: which GPUs a stage sees is said by `CUDA_VISIBLE_DEVICES`, by the numbers that
 * `nvidia-smi` shows, because the runtime counts anew when it cannot open one.
 */
function gpuLines(gpus: HostVariables['gpus']): readonly string[] {
  if (gpus.kind === 'these' && gpus.indexes.length === 0) return ['PrivateDevices=yes', 'DevicePolicy=closed'];
  return [
    ...gpuDeviceLines,
    'Environment=CUDA_DEVICE_ORDER=PCI_BUS_ID',
    ...(gpus.kind === 'all' ? [] : [`Environment=CUDA_VISIBLE_DEVICES=${gpus.indexes.join(',')}`]),
  ];
}

const section = (name: string, lines: readonly string[]): string =>
  ['# What differs between hosts; made by deploy.', `[${name}]`, ...lines, ''].join('\n');
