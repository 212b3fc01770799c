/** What a host says of itself (`facts-script.ts`), parsed strictly. */
import type { HostName } from '../../protocol/ids.ts';
import { FactLines } from './fact-lines.ts';
import { cudaLibraries } from './facts-script.ts';

export interface HostFacts {
  readonly os: { readonly id: string; readonly version: string; readonly name: string };
  /** As `uname -s` and `-r` say. */
  readonly kernel: { readonly name: string; readonly release: string };
  /** As `uname -m` says: `x86_64`, `aarch64`. */
  readonly machine: string;
  readonly libc:
    { readonly kind: 'glibc'; readonly version: Version } | { readonly kind: 'other'; readonly text: string };
  /** `null` where there is none, or where it is installed and did not boot the machine. */
  readonly systemdVersion: number | null;
  /** 32 hexadecimal digits; empty where the machine has none. */
  readonly machineId: string;
  readonly hostname: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  /** The host's clock, in milliseconds since 1970. */
  readonly clockMs: number;
  /** Free bytes by folder. */
  readonly freeBytes: ReadonlyMap<string, number>;
  /** Whether polkit with rules in JavaScript is there. */
  readonly hasPolkit: boolean;
  /** IP addresses without zones; empty where the host has no program to ask. */
  readonly addresses: readonly string[];
  /** Stages that run, by their units' names. */
  readonly stageUnits: readonly string[];
  readonly nvidia: NvidiaFacts;
  /** What it has of a monitoring that deploy put there (`monitoring/withdrawal.ts`), as paths. */
  readonly monitoringPieces: readonly string[];
}

export interface NvidiaFacts {
  /** `null` where no driver is loaded. */
  readonly driver: string | null;
  readonly hasDevice: boolean;
  /** Those of `cudaLibraries` that the dynamic linker finds. */
  readonly libraries: readonly string[];
  readonly gpus: readonly Gpu[];
}

export interface Gpu {
  readonly index: number;
  readonly name: string;
  readonly memoryBytes: number;
}

export interface Version {
  readonly major: number;
  readonly minor: number;
}

/**
 * @param text what the script printed
 * @throws HOST_FACTS_UNREADABLE
 */
export function parseFacts(host: HostName, text: string): HostFacts {
  const lines = new FactLines(host, text);
  const [kernelName = '', kernelRelease = ''] = lines.one('kernel', /^(\S+) (\S+)$/);
  const [seconds = ''] = lines.one('clock', /^(\d{1,12})$/);
  return {
    os: { id: lines.text('os-id'), version: lines.text('os-version'), name: lines.text('os-name') },
    kernel: { name: kernelName, release: kernelRelease },
    machine: lines.one('machine', /^(\S+)$/)[0] ?? '',
    libc: libcOf(lines.text('libc')),
    systemdVersion: systemdOf(lines),
    machineId: lines.one('machine-id', /^([0-9a-f]{32}|)$/)[0] ?? '',
    hostname: lines.one('hostname', /^(\S+)$/)[0] ?? '',
    cpus: lines.count('cpus'),
    memoryBytes: lines.count('memory-kib') * 1024,
    clockMs: Number(seconds) * 1000,
    freeBytes: new Map(
      lines.many('disk', /^(\/.*) (\d{1,15})$/).map(([folder = '', kib = '']) => [folder, Number(kib) * 1024]),
    ),
    hasPolkit: lines.text('polkit') !== '',
    addresses: lines.many('address', /^([0-9a-fA-F.:]+)$/).map(([address = '']) => address),
    stageUnits: lines.many('stage-unit', /^(p4-stage@\S+\.service)$/).map(([unit = '']) => unit),
    nvidia: nvidiaOf(lines),
    monitoringPieces: lines.many('monitoring', /^(\/.+)$/).map(([path = '']) => path),
  };
}

function nvidiaOf(lines: FactLines): NvidiaFacts {
  const driver = lines.text('nvidia-driver');
  const found = new Set(lines.many('library', /^(\S+)$/).map(([name = '']) => name));
  return {
    driver: driver === '' ? null : driver,
    hasDevice: lines.text('nvidia-device') !== '',
    libraries: cudaLibraries.filter((name) => found.has(name)),
    gpus: lines.many('gpu', /^(\d{1,3}), (\d{1,9}), (.+)$/).map(([index = '', mib = '', name = '']) => ({
      index: Number(index),
      name,
      memoryBytes: Number(mib) * 1024 ** 2,
    })),
  };
}

function libcOf(text: string): HostFacts['libc'] {
  const [, major, minor] = /^glibc (\d+)\.(\d+)/.exec(text) ?? [];
  if (major === undefined || minor === undefined) return { kind: 'other', text };
  return { kind: 'glibc', version: { major: Number(major), minor: Number(minor) } };
}

function systemdOf(lines: FactLines): number | null {
  const [, version] = /^systemd (\d+)/.exec(lines.text('systemd')) ?? [];
  return version === undefined || lines.text('booted') !== 'systemd' ? null : Number(version);
}
