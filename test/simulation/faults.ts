/** Carries out what was planned to befall a world: on whom, is chosen when the time has come. */
import { P4Error } from '../../protocol/errors.ts';
import { generation } from '../../protocol/ids.ts';
import type { LoadName } from '../../provisioner/loader-step.ts';
import type { HostModel } from './host-model.ts';
import type { ToyStage } from './toy-stage.ts';
import type { World } from './world.ts';
import type { FaultKind, PlannedFault } from './world-plan.ts';

export class Faults {
  readonly #world: World;
  readonly #kinds: Readonly<Record<FaultKind, (fault: PlannedFault) => void>> = {
    'stage-killed': () => {
      this.#stage()?.kill(new P4Error('STAGE_LOST', { exit: 'SIGKILL' }));
    },
    'stage-stopped': ({ lastsMs }) => {
      this.#stage()?.stopScheduling(lastsMs);
    },
    'stage-strange': () => {
      const stage = this.#stage();
      if (stage !== undefined) stage.isStrange = true;
    },
    // Its slice is damaged, say, or the host has no memory left: it ends whenever it is loaded.
    'loads-fail': ({ lastsMs }) => {
      const stage = this.#stage();
      if (stage === undefined) return;
      this.#world.machine(stage.host).failLoads(stage.order.ring, lastsMs);
      stage.kill(new P4Error('STAGE_LOST', { exit: 'SIGKILL' }));
    },
    // Its disk is slower than anybody's patience.
    'load-hangs': ({ lastsMs }) => {
      const stage = this.#stage();
      if (stage === undefined) return;
      this.#world.machine(stage.host).hangLoads(stage.order.ring, lastsMs);
      stage.kill(new P4Error('STAGE_LOST', { exit: 'SIGKILL' }));
    },
    'link-broken': () => {
      const links = [...this.#world.network.links];
      if (links.length > 0) this.#world.network.breakOne(this.#world.random.pick(links));
    },
    'hosts-cut': ({ lastsMs }) => {
      const { plan, random, network } = this.#world;
      const one = random.pick(plan.hosts);
      const other = random.pick(plan.hosts);
      if (one !== other) network.cut(one, other, lastsMs);
    },
    'agent-killed': ({ lastsMs }) => {
      const { random } = this.#world;
      const machine = this.#machine();
      // Whatever killed it may have killed more.
      const stages = machine.livingStages();
      const killed = random.oneIn(3) ? stages.slice(0, 1) : random.oneIn(4) ? stages : [];
      for (const stage of killed) stage.kill(new P4Error('STAGE_LOST', { exit: 'SIGKILL' }));
      machine.killAgent(Math.min(lastsMs, 10_000));
    },
    'agent-stopped': ({ lastsMs }) => {
      this.#machine().process?.stopScheduling(lastsMs);
    },
    'power-lost': ({ lastsMs }) => {
      this.#machine().losePower(lastsMs);
    },
    'journal-fails': ({ lastsMs }) => {
      const { journal } = this.#machine();
      journal.isFailing = true;
      this.#world.clock.after(lastsMs, () => {
        journal.isFailing = false;
      });
    },
    intruder: () => {
      this.#intrude();
    },
  };

  constructor(world: World) {
    this.#world = world;
  }

  plan(): void {
    const { plan, clock, network } = this.#world;
    network.slowOneIn = plan.slowMessagesOneIn;
    for (const fault of plan.faults) {
      clock.after(fault.atMs, () => {
        this.#world.trace(() => `fault: ${fault.kind} for ${fault.lastsMs} ms`);
        this.#kinds[fault.kind](fault);
      });
    }
    clock.after(plan.faultsEndMs, () => {
      network.slowOneIn = 0;
    });
  }

  /** G3, G6: somebody with another generation loads over a ring, and dials into it. */
  #intrude(): void {
    const { random, rings, network } = this.#world;
    const ring = random.pick(rings);
    const { kept } = ring;
    if (kept === null) return;
    const wrong: LoadName = { generation: generation((kept.generation + 1n).toString()), loadId: kept.loadId };
    for (const host of ring.hosts) {
      const { agent } = this.#world.machine(host);
      // Where the name is free, it would be the first to claim it.
      agent?.hear(() => {
        if (!agent.state.rings.has(ring.ring)) return;
        agent.shell.dispatch(ring.input('load', { call: this.#world.nextCall(), host, load: wrong }));
      });
    }
    for (const { index, host } of ring.plan.stages) {
      const destination = ring.plan.stages[(index + 1) % ring.plan.stages.length];
      const dialler = this.#world.machine(host).agent;
      if (destination === undefined || dialler === null) continue;
      const edge = { ring: ring.ring, generation: wrong.generation, source: index, destination: destination.index };
      network.dial(dialler, { ...edge, host: destination.host, address: destination.host, port: 7400 }, (dialled) => {
        if (!(dialled instanceof P4Error)) dialled.close();
      });
    }
  }

  #machine(): HostModel {
    return this.#world.random.pick(this.#world.machines);
  }

  #stage(): ToyStage | undefined {
    const { plan, machines, random } = this.#world;
    const first = plan.rings[0]?.plan.ring;
    const stages = machines
      .flatMap((machine) => [...machine.livingStages()])
      .filter(({ order }) => !plan.sparesOthers || order.ring === first);
    return stages.length === 0 ? undefined : random.pick(stages);
  }
}
