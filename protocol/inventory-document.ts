/**
 * An inventory file's text made a checked `Inventory`, or every fault in it.
 *
 * A setting is looked for at the host, then at its groups, then at the fleet. The shape is checked by
 * `inventory-schema.ts`, what holds between hosts by `inventory-relations.ts`.
 */
import { assert } from './assert.ts';
import { cpuRangesOf } from './cpu-range.ts';
import { readDocument, type PlainDocument } from './document.ts';
import { orderedFaults, type Fault } from './fault.ts';
import { hostName } from './ids.ts';
import { inventoryDefaults } from './inventory-defaults.ts';
import { relationFaults } from './inventory-relations.ts';
import {
  checkInventoryFile,
  type HostFile,
  type InventoryFile,
  type SettingsFile,
  type SshTargetFile,
  type VariablesFile,
} from './inventory-schema.ts';
import type {
  Advertise,
  Become,
  CpuRange,
  HostVariables,
  Inventory,
  InventoryHost,
  Jump,
  SshTarget,
} from './inventory.ts';
import { schemaFaults } from './schema-fault.ts';

/** A good inventory, with the way back to the lines it was read from. */
export interface InventoryDocument {
  readonly inventory: Inventory;
  readonly locate: PlainDocument['locate'];
}

export type InventoryReading =
  ({ readonly kind: 'inventory' } & InventoryDocument) | { readonly kind: 'faults'; readonly faults: readonly Fault[] };

/**
 * Never throws for any text.
 *
 * @param file the name that faults give the inventory's file
 */
export function parseInventory(text: string, file: string): InventoryReading {
  const { document, faults } = readDocument(text, file);
  if (document === null) return { kind: 'faults', faults: orderedFaults(faults) };
  const { value } = document;
  const hasShape = checkInventoryFile(value);
  const all = [...faults, ...schemaFaults(checkInventoryFile.errors ?? [], document), ...relationFaults(document)];
  if (all.length > 0 || !hasShape) return { kind: 'faults', faults: orderedFaults(all) };
  return { kind: 'inventory', inventory: inventoryOf(value), locate: document.locate };
}

function inventoryOf(file: InventoryFile): Inventory {
  const { monitoring } = file;
  const watcher = typeof monitoring === 'string' ? { host: monitoring } : monitoring;
  return {
    hosts: Object.entries(file.hosts).map(([name, host]) => hostOf(name, host, file)),
    monitoring:
      watcher === undefined
        ? null
        : { host: hostName(watcher.host), port: watcher.port ?? inventoryDefaults.prometheusPort },
  };
}

function hostOf(name: string, host: HostFile, file: InventoryFile): InventoryHost {
  const groups = host.groups ?? [];
  const settings = handedDown([file.fleet, ...groups.map((group) => file.groups?.[group]), host]);
  return {
    name: hostName(name),
    groups,
    connection: {
      ...targetOf({ ...settings, address: host.address }),
      become: becomeOf(settings.become ?? 'none'),
      jump: jumpOf(settings.jump ?? 'none'),
    },
    variables: variablesOf(settings.variables ?? {}),
  };
}

/** One level's settings over another's, from the widest to the narrowest. */
const handedDown = (levels: readonly (SettingsFile | null | undefined)[]): SettingsFile =>
  levels.reduce<SettingsFile>((wide, level) => {
    const narrow = level ?? {};
    const ports = { ...wide.variables?.ports, ...narrow.variables?.ports };
    return { ...wide, ...narrow, variables: { ...wide.variables, ...narrow.variables, ports } };
  }, {});

const targetOf = ({ address, port, user, key }: SshTargetFile): SshTarget => ({
  address,
  port: port ?? inventoryDefaults.sshPort,
  user: user ?? null,
  key: key === undefined || key === 'agent' ? { kind: 'agent' } : { kind: 'file', path: key },
});

function becomeOf(file: NonNullable<SettingsFile['become']>): Become {
  if (file === 'none') return { kind: 'none' };
  if (file === 'sudo') return { kind: 'sudo', password: { kind: 'none' } };
  const { sudo } = file;
  return { kind: 'sudo', password: sudo === 'ask' ? { kind: 'ask' } : { kind: 'file', path: sudo.passwordFile } };
}

function jumpOf(file: NonNullable<SettingsFile['jump']>): Jump | null {
  if (file === 'none') return null;
  return typeof file === 'string'
    ? { kind: 'host', host: hostName(file) }
    : { kind: 'machine', target: targetOf(file) };
}

function variablesOf(file: VariablesFile): HostVariables {
  const { gpus = 'all', cpus = 'all' } = file;
  return {
    advertise: advertiseOf(file.advertise ?? 'measured'),
    gpus: gpus === 'all' ? { kind: 'all' } : { kind: 'these', indexes: gpus === 'none' ? [] : gpus },
    cpus: cpus === 'all' ? null : checkedCpus(String(cpus)),
    stateFolder: file.stateFolder ?? inventoryDefaults.stateFolder,
    ports: { ...inventoryDefaults.ports, ...file.ports },
  };
}

function checkedCpus(text: string): readonly CpuRange[] {
  const reading = cpuRangesOf(text);
  assert(reading.kind === 'ranges', 'the CPUs were checked');
  return reading.ranges;
}

function advertiseOf(file: NonNullable<VariablesFile['advertise']>): Advertise {
  if (file === 'measured') return { kind: 'measured' };
  return 'address' in file
    ? { kind: 'address', address: file.address }
    : { kind: 'interface', interface: file.interface };
}
