/**
 * Agents on this machine as children of one command: for local use and the demo (A4).
 *
 * It makes what they need (certificates, configuration, the hosts' entries in the fleet file), starts them, and ends
 * them. Whatever happens in between, `stop` leaves no process, no socket and no runtime folder.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { AgentConfig, AgentReady } from '../protocol/agent-config.ts';
import { P4Error } from '../protocol/errors.ts';
import { hostName, type HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { AgentProcess, type AgentEnd } from './agent-process.ts';
import { makeOwnerFolder, ownerFileMode, writeDurably } from './durable-file.ts';
import { changeFleet, isLocalHost, readFleet, type FleetHost } from './fleet-file.ts';
import { ensureCertificate } from './pki.ts';
import { slicesFolderIn } from './prepared-slices.ts';
import { runtimeBase } from './socket-folder.ts';
import type { StateFolder } from './state-folder.ts';

export interface LocalFleetOrder {
  readonly state: StateFolder;
  /** 1 to `limits.localAgents`. */
  readonly count: number;
  /** Port of the first agent, each next one `portStep` further; `null`: any free ones. */
  readonly firstPort: number | null;
  /** Whether they count what they do, and show it; they do if absent. */
  readonly metrics?: 'on' | 'off';
  readonly signal: AbortSignal;
}

export interface LocalAgent {
  readonly host: HostName;
  readonly address: string;
  readonly port: number;
  readonly pid: number;
  /** Where its metrics are, on the same address; `null` where it cannot show them. */
  readonly metricsPort: number | null;
}

const loopback = '127.0.0.1';
/** An agent's metrics have the port after its own. */
const portStep = 2;
/** Enough for a million tokens, with room; the disk is the operator's own. */
const journalLimitBytes = 1024 ** 3;

export class LocalFleet {
  readonly agents: readonly LocalAgent[];
  readonly #processes: readonly AgentProcess[];
  readonly #runtimeFolder: string;

  private constructor(agents: readonly LocalAgent[], processes: readonly AgentProcess[], runtimeFolder: string) {
    this.agents = agents;
    this.#processes = processes;
    this.#runtimeFolder = runtimeFolder;
  }

  /**
   * Returns when all agents answer.
   * @throws STATE_FOLDER_DEPLOYED; why an agent does not start, as `AgentProcess.ready`; STATE_UNWRITABLE and others of the state folder;
   *   CANCELLED. Then nothing is left running.
   */
  static async start(order: LocalFleetOrder): Promise<LocalFleet> {
    await refuseDeployedFleet(order.state);
    const hosts = localHosts(order.count);
    const runtimeFolder = await mkdtemp(join(await runtimeBase(), 'p4-'));
    const processes: AgentProcess[] = [];
    try {
      for (const [index, host] of hosts.entries()) {
        const configPath = await writeConfig(order, { host, index, runtimeFolder });
        order.signal.throwIfAborted();
        processes.push(AgentProcess.spawn(host, configPath));
      }
      const ready = await Promise.all(processes.map((agent) => agent.ready(order.signal)));
      const agents = ready.map(localAgent);
      await registerHosts(order.state, agents);
      return new LocalFleet(agents, processes, runtimeFolder);
    } catch (error) {
      await stopAll(processes, runtimeFolder);
      throw error;
    }
  }

  /** Every agent's end, once it has come. */
  get ends(): readonly Promise<AgentEnd>[] {
    return this.#processes.map(({ ended }) => ended);
  }

  async stop(): Promise<void> {
    await stopAll(this.#processes, this.#runtimeFolder);
  }
}

/** `local`, `local-2`, `local-3`, ... */
export const localHosts = (count: number): readonly HostName[] =>
  Array.from({ length: count }, (_none, index) => hostName(index === 0 ? 'local' : `local-${index + 1}`));

/** Hosts that were deployed to and agents of this machine are two fleets: commands would ask both. */
async function refuseDeployedFleet(state: StateFolder): Promise<void> {
  const deployed = ((await readFleet(state)) ?? []).filter((host) => !isLocalHost(host));
  if (deployed.length === 0) return;
  throw new P4Error('STATE_FOLDER_DEPLOYED', { state: state.root, hosts: deployed.map(({ name }) => name) });
}

async function stopAll(processes: readonly AgentProcess[], runtimeFolder: string): Promise<void> {
  await Promise.all(processes.map((agent) => agent.stop()));
  await rm(runtimeFolder, { recursive: true, force: true });
}

interface HostPlace {
  readonly host: HostName;
  readonly index: number;
  readonly runtimeFolder: string;
}

/** Writes the agent's configuration and makes the folders in it. */
async function writeConfig(order: LocalFleetOrder, { host, index, runtimeFolder }: HostPlace): Promise<string> {
  const { state, firstPort, metrics = 'on' } = order;
  const { paths } = await ensureCertificate(state, { role: 'agent', host, addresses: [loopback] }, new Date());
  const folder = join(state.root, 'agents', host);
  const config: AgentConfig = {
    host,
    listen: [{ address: loopback, port: firstPort === null ? 0 : firstPort + index * portStep }],
    stateFolder: folder,
    slicesFolder: slicesFolderIn(state),
    // Short, by its number: a socket's path has at most 107 bytes.
    runtimeFolder: join(runtimeFolder, String(index)),
    pki: paths,
    journalLimitBytes,
    ...(metrics === 'off' ? {} : { metrics: { port: firstPort === null ? 0 : firstPort + index * portStep + 1 } }),
    stages: 'child-processes',
    endsWithInput: true,
  };
  await makeOwnerFolder(folder);
  await makeOwnerFolder(config.slicesFolder);
  await mkdir(config.runtimeFolder, { mode: 0o700 });
  const configPath = join(folder, 'agent.json');
  await writeDurably({ path: configPath, text: `${JSON.stringify(config, null, 2)}\n`, mode: ownerFileMode });
  return configPath;
}

/** The ports that the agents of one command take, for a look before they start. */
export const lastPort = (firstPort: number, count: number): number => firstPort + (count - 1) * portStep;

function localAgent({ host, pid, listen, metrics }: AgentReady): LocalAgent {
  const [first] = listen;
  if (first === undefined)
    throw new P4Error('AGENT_NOT_STARTED', { host, found: 'no address', expected: 'an address' });
  return { host, pid, ...first, metricsPort: metrics?.port ?? null };
}

/** Other hosts of the fleet stay as they are; those of an earlier start that stand at these addresses go. */
async function registerHosts(state: StateFolder, agents: readonly LocalAgent[]): Promise<void> {
  const since = new Date().toISOString();
  const entries = agents.map(({ host, address, port }): FleetHost => {
    const why = 'on this machine, over loopback';
    return { name: host, address, port, certificateName: host, since, why, network: null, ssh: null };
  });
  const names = new Set<string>(localHosts(limits.localAgents));
  await changeFleet(state, (hosts) => [...hosts.filter(({ name }) => !names.has(name)), ...entries]);
}
