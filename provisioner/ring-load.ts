/** Loads a plan's ring into a fleet: everything that `load` and the demo do alike. */
import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { LoadProgress, LoadRequest, StagePlacement } from '../protocol/messages.ts';
import { planFileOf } from '../protocol/plan-document.ts';
import type { CutSlice } from '../model/slice-cutter.ts';
import type { CommandContext } from './command.ts';
import type { FleetConnection } from './fleet-connection.ts';
import { freshGeneration, keepGeneration, readGeneration, type KeptGeneration } from './generation-file.ts';
import { unlessAborted } from './interrupt.ts';
import { standsWithOtherPlan, type AgentCommand, type LoadName, type LoadOutcome } from './loader-step.ts';
import { runLoader, type CommandOrder, type LoaderPort } from './loader.ts';
import { openPlanModel, ringHosts, type OpenedPlan } from './opened-plan.ts';
import { hashCachePathIn, prepareSlices, slicesFolderIn } from './prepared-slices.ts';
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
  /** What the generation file says now. */
  readonly kept: KeptGeneration | null;
  /** In ring order. */
  readonly slices: readonly CutSlice[];
}

/** @throws what is found before the first command leaves; a load that fails later is an outcome */
export async function loadRing(order: RingLoadOrder, context: CommandContext): Promise<RingLoad> {
  const { opened, state, fleet } = order;
  const { plan, digest } = opened;
  const { signal } = context;
  const hosts = ringHosts(plan);
  const described = await Promise.allSettled(
    hosts.filter((host) => fleet.hosts.includes(host)).map((host) => coresOf(fleet, host, signal)),
  );
  signal.throwIfAborted();
  const cores = new Map(described.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
  const model = await unlessAborted(openPlanModel(opened, { hosts: fleet.hosts, cores }), signal);
  // What is wrong with the plan is told before what is wrong with an agent.
  for (const each of described) if (each.status === 'rejected') throw each.reason;
  const kept = await readGeneration(state, plan.ring);
  // Before minutes are spent on slices that cannot be loaded.
  if (standsWithOtherPlan(kept, digest)) throw new P4Error('RING_LOADED', { ring: plan.ring });
  const slices = await prepareSlices(
    { plan, model, folder: slicesFolderIn(state), hashCachePath: hashCachePathIn(state) },
    context,
  );
  const port = new FleetLoaderPort(order, { kept, slices, context });
  const outcome = await runLoader({
    order: { ring: plan.ring, planDigest: digest, hosts },
    kept,
    fresh: port.fresh,
    port,
    signal,
  });
  context.terminal.endProgress();
  return { outcome, isMended: port.isMended, kept: port.kept, slices };
}

async function coresOf(fleet: FleetConnection, host: HostName, signal: AbortSignal): Promise<[HostName, number]> {
  const { cores } = await fleet.describe(host, signal);
  return [host, cores];
}

interface PortParts {
  readonly kept: KeptGeneration | null;
  readonly slices: readonly CutSlice[];
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
  /** Whether an agent had something to load: not all of it stood already. */
  isMended = false;
  readonly #order: RingLoadOrder;
  readonly #slices: readonly CutSlice[];
  readonly #context: CommandContext;
  /** How far each stage's load is, 0 to 1. */
  readonly #fractions: number[];

  constructor(order: RingLoadOrder, { kept, slices, context }: PortParts) {
    const { plan, path } = order.opened;
    this.fresh = freshGeneration({ plan, planFile: path, now: new Date() }, kept);
    this.kept = kept;
    this.#order = order;
    this.#slices = slices;
    this.#context = context;
    this.#fractions = plan.stages.map(() => 0);
  }

  async keep(load: LoadName, phase: KeptGeneration['phase']): Promise<void> {
    const { state, opened } = this.#order;
    const former = this.kept;
    // The same plan may have other threads now: the digest leaves them out.
    const base = former?.generation === load.generation ? { ...former, plan: opened.plan } : this.fresh;
    const next: KeptGeneration = { ...base, planFile: opened.path, phase };
    await keepGeneration(state, next, former);
    this.kept = next;
  }

  async command(command: AgentCommand, order: CommandOrder): Promise<void> {
    const client = this.#order.fleet.client(order.host);
    const ring = { ring: this.#order.opened.plan.ring, generation: order.load.generation.toString() };
    const options = { deadlineMs: deadlines[command], signal: order.signal };
    switch (command) {
      case 'load':
        for await (const progress of client.stream(['Agent', 'Load'], this.#request(order.load), options)) {
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

  #request(load: LoadName): LoadRequest {
    const { plan, digest } = this.#order.opened;
    return {
      ring: plan.ring,
      generation: load.generation.toString(),
      loadId: load.loadId,
      planDigest: digest,
      plan: JSON.stringify(planFileOf(plan)),
      stages: plan.stages.map(({ host }, index): StagePlacement => {
        const { address, port } = this.#order.fleet.address(host);
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
