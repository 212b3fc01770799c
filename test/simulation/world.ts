/** One simulated fleet: its machines, network, rings and clients, made of a seed alone, and the time they live in. */
import type { CallId } from '../../agent/calls.ts';
import { present } from '../../protocol/assert.ts';
import type { Generation, HostName, LoadId, RingName } from '../../protocol/ids.ts';
import type { Plan } from '../../protocol/plan.ts';
import { Checks } from './checks.ts';
import { ClientModel } from './client-model.ts';
import { Clock } from './clock.ts';
import { Faults } from './faults.ts';
import { HostModel } from './host-model.ts';
import { Network } from './network.ts';
import { RingModel, type LoadFacts } from './ring-model.ts';
import { SeededRandom } from './seeded-random.ts';
import { Violation } from './violation.ts';
import { planWorld, type WorldPlan } from './world-plan.ts';

export type Trace = (line: () => string) => void;

export class World {
  readonly plan: WorldPlan;
  readonly random: SeededRandom;
  readonly clock = new Clock();
  readonly network: Network;
  readonly checks: Checks;
  readonly rings: readonly RingModel[];
  readonly clients: readonly ClientModel[];
  readonly #machines = new Map<HostName, HostModel>();
  readonly #loads = new Map<LoadId, LoadFacts>();
  readonly #say: (line: string) => void;
  readonly #isTraced: boolean;
  #calls = 0;
  /** Until the faults stop. */
  hasFaults = true;

  constructor(seed: number, say: ((line: string) => void) | null = null) {
    this.random = new SeededRandom(seed);
    this.plan = planWorld(this.random);
    this.#isTraced = say !== null;
    this.#say = say ?? (() => undefined);
    this.checks = new Checks(this);
    const { random, clock } = this;
    this.network = new Network({
      ...{ clock, random },
      agentAt: (host) => this.machine(host).agent,
      isPoweredAt: (host) => this.machine(host).isPowered,
    });
    for (const host of this.plan.hosts) this.#machines.set(host, new HostModel(this, host));
    for (const machine of this.#machines.values()) machine.startAgent();
    this.rings = this.plan.rings.map(({ plan, operator }) => new RingModel(this, plan, operator));
    this.clients = this.plan.rings.flatMap(({ clients }, index) =>
      clients.map((script) => new ClientModel(this, present(this.rings[index], 'a ring has its model'), script)),
    );
    new Faults(this).plan();
  }

  get machines(): readonly HostModel[] {
    return [...this.#machines.values()];
  }

  machine(host: HostName): HostModel {
    return present(this.#machines.get(host), 'a host is one of the world');
  }

  register(load: {
    readonly ring: RingName;
    readonly load: LoadId;
    readonly generation: Generation;
    readonly plan: Plan;
  }): void {
    this.#loads.set(load.load, load);
  }

  ringNamed(name: RingName): RingModel {
    return present(
      this.rings.find(({ ring }) => ring === name),
      'a ring has its model',
    );
  }

  loadNamed(load: LoadId): LoadFacts {
    return present(this.#loads.get(load), 'a load was kept before it was told');
  }

  nextCall(): CallId {
    return ++this.#calls as CallId;
  }

  trace(line: () => string): void {
    if (this.#isTraced) this.#say(`${this.clock.nowMs.toFixed(1).padStart(9)} ${line()}`);
  }

  fail(violation: Violation): void {
    this.checks.fail(violation);
  }

  /** Runs what a process does; what it breaks is kept, and ends the run. */
  guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (error instanceof Error) this.checks.fail(error);
      else throw error;
    }
  }

  /** Lives until all is done and at rest. @throws the first violation */
  live(): void {
    const { faultsEndMs, calmMs, endMs } = this.plan;
    this.#liveUntil(faultsEndMs, () => false);
    this.hasFaults = false;
    this.trace(() => 'the faults are over');
    this.#liveUntil(calmMs, () => false);
    this.#liveUntil(endMs, () => this.clients.every(({ isDone }) => isDone) && this.#isAtRest());
    // Leases that nobody holds run out, and what is left goes round.
    this.#liveUntil(this.clock.nowMs + this.plan.lingerMs + 20_000, () => false);
    this.checks.atEnd();
  }

  #isAtRest(): boolean {
    return this.rings.every((ring) => (ring.wanted === 'loaded' ? ring.isWhole && !ring.isLoading : ring.isOver));
  }

  #liveUntil(untilMs: number, isOver: () => boolean): void {
    let turns = 0;
    while (this.clock.turn(untilMs)) {
      this.checks.afterTurn();
      if (++turns % 16 === 0 && isOver()) return;
      if (turns > mostTurns) throw new Violation('liveness', `the fleet is busy without end at ${this.clock.nowMs} ms`);
    }
  }
}

const mostTurns = 2_000_000;
