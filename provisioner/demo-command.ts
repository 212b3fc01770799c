/** `demo`: one prompt through a whole ring on this machine, told step by step, and nothing left behind. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import type { Command } from 'commander';

import { present } from '../protocol/assert.ts';
import type { RingName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { StatusReply } from '../protocol/messages.ts';
import { planFileOf } from '../protocol/plan-document.ts';
import { parseSampling } from '../protocol/sampling-check.ts';
import { AnswerPrinter, requireFinished, workLines } from './answer-printer.ts';
import { modeOf, packageFolder, runCommand, type CommandContext } from './command.ts';
import { FleetConnection } from './fleet-connection.ts';
import { reportLoad } from './load-command.ts';
import { LocalFleet, localHosts } from './local-fleet.ts';
import { wholeNumber } from './number-option.ts';
import { openPlan, type OpenedPlan } from './opened-plan.ts';
import { loadRing } from './ring-load.ts';
import { RingCalls } from './ring-calls.ts';
import { runRequest } from './ring-request.ts';
import { stateFolder, type StateFolder } from './state-folder.ts';
import type { Terminal } from './terminal.ts';
import { bytesText } from './text-table.ts';

interface DemoOptions {
  readonly agents: string;
  readonly prompt: string;
  readonly maxTokens?: string;
  readonly seed: string;
  readonly json?: boolean;
}

interface Demo {
  readonly agents: number;
  readonly prompt: string;
  readonly maxTokens: number | null;
  readonly seed: number;
}

const planFile = join(packageFolder, 'plans/stories.yaml');
/** Each stage is on one agent: more agents than stages would have nothing to do. */
const agentsMax = 4;

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('tells a story with a small model cut into four stages, on this machine')
    .option('--agents <number>', `over how many agents, 1 to ${agentsMax}`, '1')
    .option('--prompt <text>', 'how the story begins', 'Once upon a time')
    .option('--max-tokens <count>', 'tokens to tell at most (default: until the story ends)')
    .option('--seed <number>', 'another number tells another story', '1')
    .option('--json', 'print JSON lines')
    .action((options: DemoOptions) =>
      runCommand(modeOf(options), (context) => {
        const { maxTokens } = options;
        const demo: Demo = {
          agents: wholeNumber('--agents', options.agents, [1, agentsMax]),
          prompt: options.prompt,
          maxTokens: maxTokens === undefined ? null : wholeNumber('--max-tokens', maxTokens, [1, limits.contextTokens]),
          seed: wholeNumber('--seed', options.seed, [0, 0xffff_ffff]),
        };
        return runDemo(demo, context);
      }),
    );
}

async function runDemo(demo: Demo, context: CommandContext): Promise<number> {
  const { terminal, signal } = context;
  signal.throwIfAborted();
  const home = await mkdtemp(join(tmpdir(), 'p4-demo-'));
  try {
    terminal.line('p4 runs one language model as a ring of stages, each a process of its own.');
    terminal.line(`All that this demonstration makes is in ${home}, and is removed at the end.`);
    const state = stateFolder({ option: join(home, 'state'), environment: {}, workingFolder: home });
    const opened = await demoPlan(home, demo.agents);
    const fleet = await LocalFleet.start({ state, count: demo.agents, firstPort: null, signal });
    try {
      reportAgents(terminal, fleet);
      await tellStory({ demo, opened, state }, context);
    } finally {
      await fleet.stop();
    }
  } finally {
    await rm(home, { recursive: true, force: true });
  }
  signal.throwIfAborted();
  terminal.line(`\nEvery process has ended, and ${home} is removed.`);
  return 0;
}

/** The demonstration's plan with its stages spread over the agents, in ring order. */
async function demoPlan(home: string, agents: number): Promise<OpenedPlan> {
  const { plan, modelPath } = await openPlan(planFile);
  const hosts = localHosts(agents);
  const stages = plan.stages.map((stage, index) => ({
    ...stage,
    host: present(hosts[Math.floor((index * agents) / plan.stages.length)], 'each stage has an agent'),
  }));
  const path = join(home, basename(planFile));
  // JSON is YAML.
  await writeFile(path, JSON.stringify(planFileOf({ ...plan, model: modelPath, stages }), null, 2));
  return openPlan(path);
}

function reportAgents(terminal: Terminal, fleet: LocalFleet): void {
  for (const { host, address, port, pid } of fleet.agents) {
    terminal.line(`Agent ${host} has started: process ${pid}, listening on ${address}:${port} with mutual TLS.`);
  }
  terminal.event({ event: 'agents', agents: fleet.agents });
}

interface Story {
  readonly demo: Demo;
  readonly opened: OpenedPlan;
  readonly state: StateFolder;
}

async function tellStory({ demo, opened, state }: Story, context: CommandContext): Promise<void> {
  const { terminal, signal } = context;
  const { plan, modelPath } = opened;
  const connection = await FleetConnection.open(state);
  try {
    terminal.line(`Cutting ${modelPath} into ${plan.stages.length} slices and loading each into a stage:`);
    const load = await loadRing({ opened, state, fleet: connection }, context);
    reportLoad(terminal, { ...load, plan, state });
    const { outcome } = load;
    if (outcome.kind === 'failed') return;
    const statuses = (): Promise<readonly StatusReply[]> => askStatus(connection, plan.ring, signal);
    reportStages(terminal, await statuses());
    const head = present(plan.stages[0], 'a plan has a head');
    const ring = new RingCalls(connection.client(head.host), plan.ring, outcome.load.generation);
    const sampling = parseSampling({ seed: demo.seed });
    const printer = new AnswerPrinter(terminal, demo);
    terminal.line(`\nThe story, seed ${demo.seed}:\n`);
    terminal.part(demo.prompt);
    const result = await runRequest({
      ring,
      order: {
        prompt: { kind: 'text', text: demo.prompt },
        parseSpecial: true,
        sampling,
        maxTokens: demo.maxTokens,
        stopStrings: [],
        ignoreEnd: false,
      },
      signal,
      onNews: printer.news.bind(printer),
    });
    printer.end(result);
    terminal.endLine();
    requireFinished(result);
    terminal.line(`\n${workLines(result).join('\n')}`);
    reportLinks(terminal, await statuses());
    printer.settlement(result);
  } finally {
    await connection.close();
  }
}

const askStatus = (connection: FleetConnection, ring: RingName, signal: AbortSignal): Promise<readonly StatusReply[]> =>
  Promise.all(
    connection.hosts.map((host) =>
      connection.client(host).call(['Agent', 'Status'], { ring }, { deadlineMs: limits.answerMs, signal }),
    ),
  );

function reportStages(terminal: Terminal, statuses: readonly StatusReply[]): void {
  const nodes = statuses.flatMap(({ rings }) => rings.flatMap((ring) => ring.nodes));
  const processes = nodes.sort((one, other) => one.node - other.node).map(({ pid }) => pid);
  terminal.line(`The stages are the processes ${processes.join(', ')}; one token has gone all the way round.`);
}

/** What crossed from one agent to another; nothing under a single agent, where a hop is a function call (E2). */
function reportLinks(terminal: Terminal, statuses: readonly StatusReply[]): void {
  const links = statuses.flatMap(({ rings }) => rings.flatMap((ring) => ring.links));
  for (const { source, destination, peer, frames, bytes, ackP50Ms } of links) {
    const amount = `${frames} hops, ${bytesText(Number(bytes))}`;
    const time = `acknowledged within ${ackP50Ms.toFixed(1)} ms (median)`;
    terminal.line(`Stage ${source} to stage ${destination}, over TLS to agent ${peer}: ${amount}, ${time}.`);
  }
  terminal.event({ event: 'links', links });
}
