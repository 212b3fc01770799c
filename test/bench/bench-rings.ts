/**
 * The rings that are measured: two agents on this machine, and the same two stages once under the first agent alone and
 * once under both. A ring that nobody asks costs its agent nothing, so both stay loaded.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { ringName, type HostName, type RingName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { RingStatus } from '../../protocol/messages.ts';
import type { CommandContext } from '../../provisioner/command.ts';
import { FleetConnection } from '../../provisioner/fleet-connection.ts';
import { LocalFleet } from '../../provisioner/local-fleet.ts';
import { openPlan } from '../../provisioner/opened-plan.ts';
import { RingCalls } from '../../provisioner/ring-calls.ts';
import { loadRing } from '../../provisioner/ring-load.ts';
import { stateFolder, type StateFolder } from '../../provisioner/state-folder.ts';
import type { ArmName, BenchProcess, LinkTimes } from './measurement.ts';
import { RingArm } from './ring-arm.ts';

export interface BenchModel {
  readonly path: string;
  readonly layers: number;
  readonly contextTokens: number;
}

interface RingPlace {
  readonly name: ArmName;
  /** Of each stage, in ring order. */
  readonly hosts: readonly HostName[];
}

export class BenchRings {
  readonly #fleet: LocalFleet;
  readonly #state: StateFolder;
  readonly #connection: FleetConnection;
  readonly #home: string;
  readonly #context: CommandContext;

  private constructor(parts: {
    readonly fleet: LocalFleet;
    readonly state: StateFolder;
    readonly connection: FleetConnection;
    readonly home: string;
    readonly context: CommandContext;
  }) {
    this.#fleet = parts.fleet;
    this.#state = parts.state;
    this.#connection = parts.connection;
    this.#home = parts.home;
    this.#context = parts.context;
  }

  /** @param home a folder for all that is made; @param agents how many */
  static async start(home: string, agents: number, context: CommandContext): Promise<BenchRings> {
    const state = stateFolder({ option: join(home, 'state'), environment: {}, workingFolder: home });
    const fleet = await LocalFleet.start({ state, count: agents, firstPort: null, signal: context.signal });
    try {
      const connection = await FleetConnection.open(state);
      return new BenchRings({ fleet, state, connection, home, context });
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  }

  get hosts(): readonly HostName[] {
    return this.#fleet.agents.map(({ host }) => host);
  }

  /** Loads a ring whose stages have the same number of layers each, one thread each. */
  async load(model: BenchModel, { name, hosts }: RingPlace): Promise<RingArm> {
    const { signal } = this.#context;
    const opened = await openPlan(await this.#writePlan(model, { name, hosts }));
    const { outcome } = await loadRing({ opened, state: this.#state, fleet: this.#connection }, this.#context);
    if (outcome.kind === 'failed') {
      const { code, facts } = outcome.failure;
      throw new P4Error(code, facts);
    }
    const { ring } = opened.plan;
    const head = present(hosts[0], 'a ring has a head');
    const calls = new RingCalls(this.#connection.client(head), ring, outcome.load.generation);
    return new RingArm({ name, calls, processes: await this.#processes(name, hosts), signal });
  }

  /** The links between agents that a ring has, in ring order. */
  async links(name: ArmName): Promise<readonly LinkTimes[]> {
    const statuses = await this.#statuses(name, this.hosts);
    return statuses
      .flatMap(({ links }) => links)
      .map(({ source, destination, frames, ackP50Ms, ackP99Ms }) => {
        return { source, destination, frames: Number(frames), ackP50Ms, ackP99Ms };
      })
      .sort((one, other) => one.source - other.source);
  }

  async stop(): Promise<void> {
    this.#connection.close();
    await this.#fleet.stop();
  }

  async #writePlan(model: BenchModel, { name, hosts }: RingPlace): Promise<string> {
    const each = model.layers / hosts.length;
    const plan = {
      ring: nameOfRing(name),
      model: model.path,
      context: model.contextTokens,
      sessions: 1,
      decode: 'fast',
      stages: hosts.map((host, index) => {
        return { host, layers: `${index * each}-${(index + 1) * each - 1}`, threads: 1 };
      }),
    };
    const path = join(this.#home, `${plan.ring}.yaml`);
    // JSON is YAML.
    await writeFile(path, JSON.stringify(plan));
    return path;
  }

  async #processes(name: ArmName, hosts: readonly HostName[]): Promise<readonly BenchProcess[]> {
    const used = this.#fleet.agents.filter(({ host }) => hosts.includes(host));
    const agents = used.map(({ host, pid }): BenchProcess => ({ role: 'agent', name: `agent ${host}`, pid }));
    const nodes = (await this.#statuses(name, hosts)).flatMap((ring) => ring.nodes);
    const stages = nodes
      .sort((one, other) => one.node - other.node)
      .map(({ node, pid }): BenchProcess => ({ role: 'stage', name: `stage ${node}`, pid }));
    return [...agents, ...stages, { role: 'client', name: 'this command', pid: process.pid }];
  }

  async #statuses(name: ArmName, hosts: readonly HostName[]): Promise<readonly RingStatus[]> {
    const { signal } = this.#context;
    const options = { deadlineMs: limits.answerMs, signal };
    const ring = nameOfRing(name);
    const replies = await Promise.all(
      [...new Set(hosts)].map((host) => this.#connection.client(host).call(['Agent', 'Status'], { ring }, options)),
    );
    return replies.flatMap(({ rings }) => rings);
  }
}

const nameOfRing = (name: ArmName): RingName => ringName(`bench-${name.replace(' ', '-')}`);
