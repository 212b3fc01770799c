/** The figures of one session as tables for people. */
import { bytesText, tableLines } from '../../provisioner/text-table.ts';
import type { BenchProcess } from './arm.ts';
import type { MemoryUse } from './process-usage.ts';
import { armNames, type ArmFigures, type ArmName, type SingleSummary } from './single-summary.ts';
import { spreadText, type Spread } from './statistics.ts';

export interface ProcessMemory extends MemoryUse, BenchProcess {}

const armTitles: Readonly<Record<ArmName, string>> = {
  uncut: 'uncut, one process',
  'one agent': '2 stages, 1 agent',
  'two agents': '2 stages, 2 agents',
};

export function figureLines({ arms, ratios }: SingleSummary): readonly string[] {
  const row = (title: string, cell: (figures: ArmFigures, name: ArmName) => string): string[] => [
    title,
    ...armNames.map((name) => cell(arms[name], name)),
  ];
  const milliseconds = (spread: Spread): string => spreadText(spread, 2);
  return [
    ...tableLines(
      [
        { title: 'median (least to greatest)', align: 'left' },
        ...armNames.map((name) => ({ title: armTitles[name], align: 'right' }) as const),
      ],
      [
        row('decode, tokens/s', ({ decodeTokensPerSecond }) => spreadText(decodeTokensPerSecond, 1)),
        row('token to token, ms, p50 / p99', ({ intervalMs }) => pairText(intervalMs.p50, intervalMs.p99)),
        row('agent CPU, ms per token', (figures) => cpuText(figures, 'agent')),
        row('stage CPU beyond uncut, ms per token', ({ stageCpuBeyondUncutMs }, name) =>
          name === 'uncut' ? '-' : milliseconds(stageCpuBeyondUncutMs),
        ),
        row('beyond computing, ms per token', ({ restMs }) => milliseconds(restMs)),
      ],
    ),
    '',
    ...tableLines(
      [
        { title: 'ratio within a round', align: 'left' },
        { title: 'median (least to greatest)', align: 'right' },
      ],
      ratios.map(({ name, spread }) => [name, spreadText(spread, 3)]),
    ),
  ];
}

/** The ways between agents, against the network alone. */
export function hopLines({ links, network, edgeBetweenAgentsMs }: SingleSummary): readonly string[] {
  return [
    ...tableLines(
      [
        { title: 'between agents', align: 'left' },
        { title: 'p50 / p99, ms', align: 'right' },
      ],
      [
        ...links.map(({ source, destination, ackP50Ms, ackP99Ms }) => [
          destination === 0
            ? `stage ${source} home to the head's agent, to its acknowledgement`
            : `stage ${source} to stage ${destination}, to its acknowledgement (the stage's computing included)`,
          pairText(ackP50Ms, ackP99Ms),
        ]),
        ['network alone: 128 bytes there and back over TCP', pairText(network.p50Ms.median, network.p99Ms.median)],
      ],
    ),
    `An edge between two agents adds ${spreadText(edgeBetweenAgentsMs, 2)} ms to one inside an agent.`,
  ];
}

export const memoryLines = (processes: readonly ProcessMemory[]): readonly string[] =>
  tableLines(
    [
      { title: 'memory', align: 'left' },
      { title: 'resident', align: 'right' },
      { title: 'anonymous', align: 'right' },
    ],
    processes.map(({ name, residentBytes, anonymousBytes }) => [
      name,
      bytesText(residentBytes),
      bytesText(anonymousBytes),
    ]),
  );

/** Where the time and the CPU of a token go, in microseconds. */
export function profileLines({ arms, edgeBetweenAgentsMs, links }: SingleSummary): readonly string[] {
  const row = (title: string, cell: (figures: ArmFigures) => number | undefined): string[] => [
    title,
    ...armNames.map((name) => {
      const ms = cell(arms[name]);
      return ms === undefined ? '-' : (ms * 1000).toFixed(0);
    }),
  ];
  const cpu = (role: string, index: number) => (figures: ArmFigures) =>
    figures.cpuMs.filter((process) => process.role === role)[index]?.ms.median;
  const links0 = links.length * edgeBetweenAgentsMs.median * 1000;
  return [
    ...tableLines(
      [
        { title: 'one token, microseconds', align: 'left' },
        ...armNames.map((name) => ({ title: armTitles[name], align: 'right' }) as const),
      ],
      [
        row('time: first stage (or all) computes', ({ computeMs }) => computeMs[0]?.median),
        row('time: second stage computes', ({ computeMs }) => computeMs[1]?.median),
        row('time: everything else', ({ restMs }) => restMs.median),
        row("CPU: head's agent", cpu('agent', 0)),
        row('CPU: other agent', cpu('agent', 1)),
        row('CPU: first stage (or all)', (figures) => cpu('stage', 0)(figures) ?? cpu('model', 0)(figures)),
        row('CPU: second stage', cpu('stage', 1)),
        row('CPU: client', cpu('client', 0)),
      ],
    ),
    `Of everything else under two agents, ${links0.toFixed(0)} microseconds are the ${links.length} links.`,
  ];
}

const pairText = (one: number, other: number): string => `${one.toFixed(2)} / ${other.toFixed(2)}`;

function cpuText({ cpuMs }: ArmFigures, role: string): string {
  const own = cpuMs.filter((process) => process.role === role);
  return own.length === 0 ? '-' : own.map(({ ms }) => spreadText(ms, 2)).join(', ');
}
