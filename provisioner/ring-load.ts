/** Loads a plan's ring into a fleet: everything that `load` and the demo do alike. */
import { assert, present } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { AgentDescription, LoadProgress, LoadRequest, RingStatus, StagePlacement } from '../protocol/messages.ts';
import { planFileOf } from '../protocol/plan-document.ts';
import { threadsOf, type Plan } from '../protocol/plan.ts';
import { estimateStageMemory, stageDataBytes } from '../model/memory-estimate.ts';
import type { CommandContext } from './command.ts';
import { allotCpus, settledPlan, type StageCpus } from './cpus/allotment.ts';
import { machinesOf, type AgentAnswer } from './cpus/machine.ts';
import type { FleetConnection } from './fleet-connection.ts';
import { isLocalHost } from './fleet-file.ts';
import {
  freshGeneration,
  keepGeneration,
  readGeneration,
  restoreGeneration,
  type KeptGeneration,
} from './generation-file.ts';
import { unlessAborted } from './interrupt.ts';
import {
  isHalfUnloaded,
  isStanding,
  standsWithOtherPlan,
  type AgentCommand,
  type LoadName,
  type LoadOutcome,
} from './loader-step.ts';
import { runLoader, type CommandOrder, type LoaderPort } from './loader.ts';
import { requireFit, type HostNeed, type StageLimit } from './fleet-fit.ts';
import { checkPlanFits, ringHosts, type OpenedPlan } from './opened-plan.ts';
import { openHostsModel, openOperatorModel, plannedSlices, type PlanModel, type PlannedSlice } from './plan-model.ts';
import { hashCachePathIn, slicesFolderIn } from './prepared-slices.ts';
import { deliverSlices, missingSlices, slicesByHost, type Delivered, type MissingSlice } from './slice-delivery.ts';
import type { StateFolder } from './state-folder.ts';

export interface RingLoadOrder {
  readonly opened: OpenedPlan;
  readonly state: StateFolder;
  readonly fleet: FleetConnection;
}

export interface RingLoad {
  readonly outcome: LoadOutcome;
  /** Whether a stage was loaded by this call; false where everything stood. */
  readonly isMended: boolean;
  /** Whether the load that this call told again had been whole before. */
  readonly stoodBefore: boolean;
  /** What the generation file says now. */
  readonly kept: KeptGeneration | null;
  /** In ring order. */
  readonly slices: readonly PlannedSlice[];
  /** What each computes with, in ring order. */
  readonly cpus: readonly StageCpus[];
  /** Hosts that were sent slices by this call. */
  readonly delivered: readonly Delivered[];
}

/** @throws what is found before the first command leaves; a load that fails later is an outcome */
export async function loadRing(order: RingLoadOrder, context: CommandContext): Promise<RingLoad> {
  const { opened, state, fleet } = order;
  const { plan, digest } = opened;
  const { signal } = context;
  const hosts = ringHosts(plan);
  const { model, descriptions } = await checkedModel(order, context);
  const kept = await readGeneration(state, plan.ring);
  // Before minutes are spent on slices that cannot be loaded.
  if (isHalfUnloaded(kept)) throw new P4Error('RING_HALF_UNLOADED', { ring: plan.ring });
  if (standsWithOtherPlan(kept, digest)) throw new P4Error('RING_LOADED', { ring: plan.ring });
  const agents = await agentAnswers(order, signal);
  const parts = ringParts(plan, agents);
  await requireName(order, kept, parts);
  const allotted = allotCpus(plan, machinesOf(agents));
  if (allotted.shortfalls.length > 0) throw new P4Error('PLAN_OVERSUBSCRIBES', { shortfalls: allotted.shortfalls });
  const settled = settledPlan(plan, allotted.stages);
  const hashCachePath = hashCachePathIn(state);
  const slices = await plannedSlices({ plan, model, hashCachePath }, context);
  const missing = await missingSlices(fleet, slicesByHost(plan, slices), signal);
  const standing = standingStages(order, parts);
  requireFit(hostNeeds(plan, { slices, missing, standing, descriptions }), stageLimits(settled, slices));
  const delivered = await deliverSlices(
    { plan, model, missing, fleet, slicesFolder: slicesFolderIn(state), hashCachePath },
    context,
  );
  const port = new FleetLoaderPort(order, { kept, slices, settled, context });
  const outcome = await runLoader({
    order: { ring: plan.ring, planDigest: digest, hosts },
    kept,
    fresh: port.fresh,
    port,
    signal,
  });
  context.terminal.endProgress();
  const stoodBefore = kept?.phase === 'ready';
  return { outcome, isMended: port.isMended, stoodBefore, kept: port.kept, slices, cpus: allotted.stages, delivered };
}

type Descriptions = ReadonlyMap<HostName, AgentDescription>;

/** The plan's model, once the plan fits it and its hosts, and these have all answered. */
async function checkedModel(
  { opened, fleet }: RingLoadOrder,
  context: CommandContext,
): Promise<{ readonly model: PlanModel; readonly descriptions: Descriptions }> {
  const { plan, modelPath } = opened;
  const { signal } = context;
  const hosts = ringHosts(plan);
  const answers = await Promise.allSettled(
    hosts
      .filter((host) => fleet.hosts.includes(host))
      .map(async (host) => [host, await fleet.describe(host, signal)] as const),
  );
  signal.throwIfAborted();
  const descriptions = new Map(answers.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
  const requireAnswers = (): void => {
    for (const each of answers) if (each.status === 'rejected') throw each.reason;
  };
  if (plan.modelOn === 'operator') {
    const model = await unlessAborted(openOperatorModel(modelPath, plan), signal);
    // What is wrong with the plan is told before what is wrong with an agent.
    checkPlanFits(opened, model.shape, fleet.hosts);
    requireAnswers();
    return { model, descriptions };
  }
  checkPlanFits(opened, null, fleet.hosts);
  requireAnswers();
  const model = await openHostsModel({ plan, hosts, fleet }, context);
  checkPlanFits(opened, model.shape, fleet.hosts);
  return { model, descriptions };
}

type RingPart = RingStatus & { readonly host: HostName };

/**
 * What the plan's hosts say of themselves and all their rings, and so do other agents of this machine where one of the plan's
 * is one: they share its CPUs. Of these, one that does not answer has no stages.
 */
async function agentAnswers({ opened, fleet }: RingLoadOrder, signal: AbortSignal): Promise<readonly AgentAnswer[]> {
  const options = { deadlineMs: limits.answerMs, signal };
  const ask = async (host: HostName): Promise<AgentAnswer> => {
    const { agent, rings } = await fleet.client(host).call(['Agent', 'Status'], { ring: '' }, options);
    return { host, description: present(agent, 'an agent says what it is'), rings };
  };
  const hosts = ringHosts(opened.plan);
  const isLocal = (host: HostName): boolean => isLocalHost(fleet.address(host));
  const beside = hosts.some(isLocal) ? fleet.hosts.filter((host) => isLocal(host) && !hosts.includes(host)) : [];
  const [own, others] = await Promise.all([Promise.all(hosts.map(ask)), Promise.allSettled(beside.map(ask))]);
  signal.throwIfAborted();
  return [...own, ...others.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))];
}

/** What the ring's hosts hold under its name. */
const ringParts = (plan: Plan, agents: readonly AgentAnswer[]): readonly RingPart[] =>
  agents
    .filter(({ host }) => ringHosts(plan).includes(host))
    .flatMap(({ host, rings }) => rings.filter(({ ring }) => ring === plan.ring).map((part) => ({ ...part, host })));

/**
 * Refuses to load a ring whose name another load holds. Where no host has anything of the load that the file tells of,
 * which was begun and never told, the file tells of it no more.
 */
async function requireName(
  { opened, state }: RingLoadOrder,
  kept: KeptGeneration | null,
  parts: readonly RingPart[],
): Promise<void> {
  const own = kept !== null && isStanding(kept) ? kept : null;
  const other = parts.find(({ loadId }) => loadId !== own?.loadId);
  if (other === undefined) return;
  if (own?.phase === 'loading' && !parts.some(({ loadId }) => loadId === own.loadId))
    await (own.former === null
      ? restoreGeneration(state, own, null)
      : keepGeneration(state, { ...own, phase: 'failed' }, own));
  throw new P4Error('RING_TAKEN', { ring: opened.plan.ring, host: other.host });
}

/** Stages of this very plan that run already: what they hold is no part of what is still free. */
function standingStages({ opened }: RingLoadOrder, parts: readonly RingPart[]): ReadonlySet<number> {
  const rings = parts.filter(({ planDigest }) => planDigest === opened.digest);
  const nodes = rings.flatMap((ring) => ring.nodes);
  return new Set(nodes.filter(({ state }) => state === 'loaded' || state === 'loading').map(({ node }) => node));
}

const stageLimits = (plan: Plan, slices: readonly PlannedSlice[]): readonly StageLimit[] =>
  plan.stages.flatMap(({ index, host, threads, confinement }) => {
    const limitBytes = confinement?.memoryLimitBytes ?? null;
    if (limitBytes === null) return [];
    const { memory } = present(slices[index], 'each stage has a slice');
    return [
      { node: index, host, memoryBytes: stageDataBytes(memory, { plan, threads: threadsOf(threads) }), limitBytes },
    ];
  });

interface NeedParts {
  readonly slices: readonly PlannedSlice[];
  readonly missing: readonly MissingSlice[];
  readonly standing: ReadonlySet<number>;
  readonly descriptions: Descriptions;
}

function hostNeeds(plan: Plan, { slices, missing, standing, descriptions }: NeedParts): readonly HostNeed[] {
  return [...descriptions].map(([host, description]): HostNeed => {
    const stages = plan.stages.filter((stage) => stage.host === host && !standing.has(stage.index));
    const estimates = stages.map((stage) => {
      const { memory } = present(slices[stage.index], 'each stage has a slice');
      return estimateStageMemory(memory, { plan }).bytes;
    });
    const own = missing.filter((one) => one.host === host);
    return {
      host,
      machineId: description.machineId,
      memoryBytes: estimates.reduce((sum, bytes) => sum + bytes, 0),
      memoryAvailableBytes: Number(description.memoryAvailableBytes),
      diskBytes: own.reduce((sum, { slice, partBytes }) => sum + Math.max(0, slice.bytes - partBytes), 0),
      diskFreeBytes: Number(description.slicesFreeBytes),
    };
  });
}

interface PortParts {
  readonly kept: KeptGeneration | null;
  readonly slices: readonly PlannedSlice[];
  readonly settled: Plan;
  readonly context: CommandContext;
}

const isLoaded = ({ phase }: LoadProgress): boolean => phase === 'loaded' || phase === 'confirmed';

/** The agent has deadlines of its own; these are for one that has stopped answering. */
const deadlines: Readonly<Record<AgentCommand, number>> = {
  load: limits.stageStartMs + limits.stageLoadMs + limits.answerMs,
  link: limits.linkMs + limits.answerMs,
  probe: limits.probeMs + limits.answerMs,
  unload: limits.unloadMs,
};

/** The loader's effects on real agents and the real generation file. */
class FleetLoaderPort implements LoaderPort {
  readonly fresh: KeptGeneration;
  kept: KeptGeneration | null;
  /** What the file said before this load. */
  readonly #former: KeptGeneration | null;
  /** Whether an agent had something to load: not all of it stood already. */
  isMended = false;
  readonly #order: RingLoadOrder;
  readonly #slices: readonly PlannedSlice[];
  /** As agents are told it. */
  readonly #settled: Plan;
  readonly #context: CommandContext;
  /** How far each stage's load is, 0 to 1. */
  readonly #fractions: number[];

  constructor(order: RingLoadOrder, { kept, slices, settled, context }: PortParts) {
    const { plan, path } = order.opened;
    const sliceIds = slices.map(({ id }) => id);
    this.fresh = freshGeneration({ plan, planFile: path, slices: sliceIds, now: new Date() }, kept);
    this.kept = kept;
    this.#former = kept;
    this.#order = order;
    this.#slices = slices;
    this.#settled = settled;
    this.#context = context;
    this.#fractions = plan.stages.map(() => 0);
  }

  async keep(load: LoadName, phase: KeptGeneration['phase']): Promise<void> {
    const { state, opened } = this.#order;
    const former = this.kept;
    // The same plan may have other threads now: the digest leaves them out.
    const base = former?.generation === load.generation ? { ...former, plan: opened.plan } : this.fresh;
    const slices = this.#slices.map(({ id }) => id);
    const next: KeptGeneration = { ...base, planFile: opened.path, slices, phase };
    await keepGeneration(state, next, former);
    this.kept = next;
  }

  async restore(): Promise<void> {
    assert(this.kept !== null, 'what is taken back was kept');
    await restoreGeneration(this.#order.state, this.kept, this.#former);
    this.kept = this.#former;
  }

  async command(command: AgentCommand, order: CommandOrder): Promise<void> {
    const client = this.#order.fleet.client(order.host);
    const ring = { ring: this.#order.opened.plan.ring, generation: order.load.generation.toString() };
    const options = { deadlineMs: deadlines[command], signal: order.signal };
    switch (command) {
      case 'load':
        for await (const progress of client.stream(['Agent', 'Load'], this.#request(order), options)) {
          if (progress.phase !== 'confirmed') this.isMended = true;
          this.#progress(progress.node, isLoaded(progress) ? 1 : progress.fraction);
        }
        return;
      case 'link':
        this.#context.terminal.progress('linking the agents', 1);
        await client.call(['Agent', 'Link'], ring, options);
        return;
      case 'probe':
        this.#context.terminal.progress('sending one token round the ring', 1);
        await client.call(['Agent', 'Probe'], ring, options);
        return;
      case 'unload':
        await client.call(['Agent', 'Unload'], ring, options);
        return;
    }
  }

  /** With the addresses as that host's agent has to dial them. */
  #request({ load, host: dialler }: CommandOrder): LoadRequest {
    const { plan, digest } = this.#order.opened;
    const addresses = this.#order.fleet.ringAddresses(ringHosts(plan), dialler);
    return {
      ring: plan.ring,
      generation: load.generation.toString(),
      loadId: load.loadId,
      planDigest: digest,
      plan: JSON.stringify(planFileOf(this.#settled)),
      stages: plan.stages.map(({ host }, index): StagePlacement => {
        const { address, port } = addresses.get(host) ?? this.#order.fleet.address(host);
        const slice = this.#slices[index];
        return { sliceId: slice?.id ?? '', sliceBytes: String(slice?.bytes ?? 0), address, port };
      }),
    };
  }

  #progress(node: number, fraction: number): void {
    if (node < this.#fractions.length) this.#fractions[node] = fraction;
    const sum = this.#fractions.reduce((total, one) => total + one, 0);
    this.#context.terminal.progress(`loading ${this.#fractions.length} stages`, sum / this.#fractions.length);
  }
}
