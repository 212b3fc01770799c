/**
 * What must hold in every world, looked at from outside: none of these asks a decision's own opinion of itself.
 *
 * After each step: G3, G5, and what a ring's phase promises; R1 and R4 (`deadline-check.ts`). At the end: that everything came back and nothing
 * is left, and the journals (`journal-checks.ts`).
 */
import type { Input } from '../../agent/inputs.ts';
import type { EdgeAddress } from '../../agent/links/link.ts';
import type { AgentState, LiveRing } from '../../agent/state.ts';
import type { Step } from '../../agent/step.ts';
import type { HostName } from '../../protocol/ids.ts';
import type { AgentModel } from './agent-model.ts';
import { DeadlineCheck } from './deadline-check.ts';
import { checkJournal } from './journal-checks.ts';
import { checkKept, KeptCheck } from './kept-check.ts';
import { ShapeCheck } from './shape-check.ts';
import type { ToyStage } from './toy-stage.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

export interface TakenStep {
  readonly agent: AgentModel;
  readonly before: AgentState;
  readonly input: Input;
  readonly step: Step;
}

export class Checks {
  readonly #world: World;
  #first: Error | null = null;
  readonly deadlines: DeadlineCheck;
  readonly #shapes = new ShapeCheck();
  readonly #kept = new KeptCheck();

  constructor(world: World) {
    this.#world = world;
    this.deadlines = new DeadlineCheck(world);
  }

  fail(error: Error): void {
    this.#first ??= error;
  }

  /** @throws the first violation */
  afterTurn(): void {
    if (this.#first !== null) throw this.#first;
  }

  /** G3, for edges: the answer is looked at by its own measure. */
  acceptedEdge(edge: EdgeAddress, ring: LiveRing, peer: HostName): void {
    if (ring.generation !== edge.generation) throw new Violation('G3', 'an edge of another generation is accepted');
    if (ring.plan.stages[edge.source]?.host !== peer)
      throw new Violation('A3', 'an edge from another host is accepted');
  }

  taken(taken: TakenStep): void {
    this.#generation(taken);
    this.#strangers(taken);
    this.#shapes.taken(taken);
    this.#kept.taken(taken);
    this.deadlines.taken(taken);
    const { input, step } = taken;
    const ring = 'ring' in input ? step.state.rings.get(input.ring) : undefined;
    if (ring?.kind === 'live') this.#phase(ring, taken.agent.host);
  }

  /** G3: a call of another generation is refused, and nothing changes. */
  #generation({ before, input, step }: TakenStep): void {
    if (!('generation' in input) || !('call' in input)) return;
    const standing = before.rings.get(input.ring);
    if (standing === undefined) return;
    const fits =
      standing.kind === 'live'
        ? standing.generation === input.generation
        : standing.generationDigest.hash === input.generation.toString();
    if (fits) return;
    const [effect] = step.effects;
    const isRefused = step.effects.length === 1 && effect?.kind === 'reply' && effect.reply.kind === 'refused';
    if (!isRefused || step.state !== before || step.records.length > 0) {
      throw new Violation('G3', `${input.kind} of another generation is not refused, or changes something`);
    }
  }

  /** G5: whoever gives a receipt of another generation is stopped at once, and it settles nothing. */
  #strangers({ agent, before, input, step }: TakenStep): void {
    if (input.kind !== 'returned') return;
    const ring = before.rings.get(input.ring);
    if (ring?.kind !== 'live' || ring.load !== input.load || ring.phase.kind !== 'ready') return;
    const receipts = input.items.flatMap((item) => (item.kind === 'end' ? item.receipts : []));
    const strange = receipts.find(({ sourceGeneration }) => sourceGeneration !== ring.generation);
    if (strange === undefined) return;
    const after = step.state.rings.get(input.ring);
    const isStopped = step.effects.some((effect) => effect.kind === 'stop-stage' && effect.node === strange.node);
    const isHere = ring.plan.stages[strange.node]?.host === agent.host;
    if (step.records.some(({ kind }) => kind === 'request-settled'))
      throw new Violation('G5', 'a strange receipt settles');
    if ((isHere && !isStopped) || after?.kind !== 'live' || after.suspension === null) {
      throw new Violation('G5', `node ${strange.node} gave a receipt of another generation and goes on`);
    }
  }

  #phase(ring: LiveRing, host: HostName): void {
    const { phase, suspension, nodes, links, head, plan } = ring;
    const { kind } = phase;
    if (kind === 'ready' || kind === 'probing' || kind === 'linked') {
      const next = (index: number): HostName | undefined => plan.stages[(index + 1) % plan.stages.length]?.host;
      const leaving = plan.stages.filter((stage) => stage.host === host && next(stage.index) !== host);
      const isWhole = [...nodes.values()].every((node) => node.kind === 'loaded') && links.length === leaving.length;
      if (!isWhole) throw new Violation('A3', `${host} says ${kind} of a ring that lacks a stage or a link`);
    }
    if (kind === 'ready' && suspension !== null) throw new Violation('R1', 'a ring is ready and suspended');
    for (const session of head?.sessions.values() ?? []) {
      const { rows, sentRows, history } = session;
      if (rows.length > history.length || sentRows > rows.length) {
        throw new Violation('S2', `session ${session.id} has more rows than tokens`);
      }
    }
  }

  /** Nothing befell the fleet for a long time: all is well, and nothing is left over. */
  atEnd(): void {
    this.afterTurn();
    const { clients, rings, machines, plan } = this.#world;
    const stuck = clients.filter(({ isDone }) => !isDone);
    if (stuck.length > 0)
      throw new Violation('liveness', `clients never came to an end: ${stuck.map(({ text }) => text).join('; ')}`);
    for (const ring of rings) {
      if (ring.wanted === 'loaded') {
        if (!ring.isWhole)
          throw new Violation('liveness', `ring ${ring.ring} did not come back: ${this.#stateOf(ring.ring)}`);
        this.#atRest(ring.headHost, ring.ring);
      } else if (!ring.isOver) throw new Violation('liveness', `ring ${ring.ring} could not be unloaded`);
    }
    for (const machine of machines) {
      checkJournal(this.#world, machine);
      for (const stage of machine.livingStages()) {
        if (!rings.some((ring) => ring.wanted === 'loaded' && ring.kept?.loadId === stage.order.load)) {
          throw new Violation('R2', `a stage of a load that does not stand lives on ${machine.host}`);
        }
        this.#keptOnStage(stage);
      }
    }
    if (plan.sparesOthers) this.#othersWereSpared();
  }

  #keptOnStage(stage: ToyStage): void {
    const { ring } = stage.order;
    const host = this.#world.loadNamed(stage.order.load).plan.stages[0]?.host;
    const live = host === undefined ? undefined : this.#world.machine(host).agent?.state.rings.get(ring);
    if (live?.kind === 'live' && live.head !== null) checkKept(live.head, stage);
  }

  #atRest(host: HostName, name: LiveRing['ring']): void {
    const ring = this.#world.machine(host).agent?.state.rings.get(name);
    if (ring?.kind !== 'live' || ring.head === null) throw new Violation('liveness', `ring ${name} has no head`);
    const { sessions, requests, outbox, framesInFlight } = ring.head;
    const isSettled = [...requests.values()].every(({ kind }) => kind === 'settled');
    if (sessions.size > 0 || outbox.length > 0 || framesInFlight > 0 || !isSettled) {
      throw new Violation(
        'leases',
        `ring ${name} is not at rest: ${sessions.size} sessions, ${framesInFlight} frames, settled: ${isSettled}`,
      );
    }
  }

  /** R4: faults of one ring's stages are nothing to another ring on the same agents. */
  #othersWereSpared(): void {
    const [, ...others] = this.#world.rings;
    for (const { journal } of this.#world.machines) {
      for (const { admitted, records } of journal.loads.values()) {
        const isOther = others.some(({ ring }) => ring === admitted.ring);
        if (isOther && records.some(({ kind }) => kind === 'ring-suspended')) {
          throw new Violation('R4', `ring ${admitted.ring} was suspended by another ring's loss`);
        }
      }
    }
  }

  #stateOf(name: LiveRing['ring']): string {
    const words = this.#world.machines.map(({ host, agent }) => {
      const ring = agent?.state.rings.get(name);
      if (ring?.kind !== 'live') return `${host} ${ring?.kind ?? 'nothing'}`;
      const nodes = [...ring.nodes].map(([node, { kind }]) => `${node} ${kind}`).join(' ');
      return `${host} ${ring.phase.kind}${ring.suspension === null ? '' : ` suspended, attempt ${ring.suspension.attempt}`} (${nodes})`;
    });
    return words.join('; ');
  }
}
