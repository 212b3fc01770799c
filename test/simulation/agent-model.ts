/**
 * One agent process: the real `step`, the real `edgeFault` and the real fold of the journal, between models of the I/O that
 * production has around them. It hears nothing while it is stopped, and nothing ever again once it has ended.
 */
import type { CallId, CallReply } from '../../agent/calls.ts';
import { termsOf, underTerms, type Assignment } from '../../agent/assignment.ts';
import type { Effect } from '../../agent/effects.ts';
import { HeadRecall } from '../../agent/head/memory.ts';
import type { Input } from '../../agent/inputs.ts';
import type { EdgeAddress } from '../../agent/links/link.ts';
import type { AgentState, LiveRing } from '../../agent/state.ts';
import { edgeFault, edgesToDial } from '../../agent/step-link.ts';
import type { Step } from '../../agent/step.ts';
import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { Frame } from '../../protocol/hop-frame.ts';
import type { HostName, LoadId, NodeIndex } from '../../protocol/ids.ts';
import type { HostModel } from './host-model.ts';
import type { Answer, DialledAgent, SimLink } from './network.ts';
import { RingRoutesModel } from './ring-routes-model.ts';
import { ServicesModel } from './services-model.ts';
import { ShellModel } from './shell-model.ts';
import { StagesModel } from './stages-model.ts';
import { traced } from './step-trace.ts';
import type { ToyStage } from './toy-stage.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

export class AgentModel implements DialledAgent {
  readonly host: HostName;
  readonly #world: World;
  readonly #machine: HostModel;
  readonly shell: ShellModel;
  readonly services: ServicesModel;
  readonly #stages: StagesModel;
  readonly #routes = new Map<LoadId, RingRoutesModel>();
  isGone = false;
  /** It answers calls once it knows what the former process left. */
  isListening = false;
  /** Not scheduled by its system. */
  isStopped = false;
  /** When it last began to run again. */
  resumedAtMs = 0;
  /** Told while it was stopped. */
  #heard: (() => void)[] = [];

  constructor(world: World, machine: HostModel) {
    const { random, clock } = world;
    this.host = machine.host;
    this.#world = world;
    this.#machine = machine;
    const after = (ms: number, run: () => void): void => {
      this.after(ms, run);
    };
    const dispatch = (input: Input): void => {
      this.shell.dispatch(input);
    };
    this.services = new ServicesModel({
      ...{ journal: machine.journal, after, lingerMs: world.plan.lingerMs },
      expire: (load, session) => {
        const { ring } = world.loadNamed(load);
        dispatch({ kind: 'lease-expired', ring, load, session });
      },
    });
    this.#stages = new StagesModel({
      ...{ random, dispatch, after, nowMs: () => clock.nowMs, doublesOneIn: world.plan.doublesOneIn },
      hear: (news) => {
        this.hear(news);
      },
      spawn: (start) => machine.spawn(start),
      enter: (load, node, send) => this.#enter(load, node, send),
      output: (load, node, frame) => {
        this.#routes.get(load)?.output(node, frame);
      },
    });
    this.shell = new ShellModel(
      { host: machine.host, rings: new Map(), nextIncarnation: 1, nextSuspension: 1 },
      {
        ...{ random, journal: machine.journal, after },
        run: (effect) => {
          this.#run(effect);
        },
        taken: (before, input, step) => {
          this.#taken(before, input, step);
        },
      },
    );
  }

  get state(): AgentState {
    return this.shell.state;
  }

  /** Takes up what the journal holds, then asks the stages that live. */
  begin(): void {
    for (const { admitted, records } of this.#machine.journal.standing) {
      const recall = new HeadRecall({ session: 0, request: 0 });
      for (const record of records) recall.add(record);
      const { ring, load, generationDigest, planDigest } = admitted;
      this.shell.dispatch({
        ...{ kind: 'restored', ring, load, generationDigest, planDigest },
        ...{ memory: recall.memory, terms: termsOf(this.#assignmentOf(load)), fault: null },
      });
    }
    const living = this.#machine.livingStages();
    this.after(this.#world.random.between(5, 60), () => {
      this.#adoptStages(living.filter(({ life }) => life !== 'dead'));
      this.isListening = true;
    });
  }

  end(): void {
    if (this.isGone) return;
    this.isGone = true;
    this.#heard = [];
    this.shell.end();
    this.services.end();
  }

  hear(news: () => void): void {
    if (this.isGone) return;
    if (this.isStopped) this.#heard.push(news);
    else this.#world.guarded(news);
  }

  after(ms: number, run: () => void): void {
    this.#world.clock.after(ms, () => {
      this.hear(run);
    });
  }

  stopScheduling(forMs: number): void {
    if (this.isStopped) return;
    this.isStopped = true;
    this.#world.clock.after(forMs, () => {
      this.isStopped = false;
      this.resumedAtMs = this.#world.clock.nowMs;
      const heard = this.#heard;
      this.#heard = [];
      for (const news of heard) this.hear(news);
    });
  }

  /** A caller's call; the answer comes some time later, also when the process ends first. */
  ask(make: (call: CallId) => Input, answered: (reply: CallReply | 'gone') => void): void {
    const { clock, random } = this.#world;
    const later = (reply: CallReply | 'gone'): void => {
      clock.after(random.between(1, 4) / 2, () => {
        this.#world.guarded(() => {
          answered(reply);
        });
      });
    };
    clock.after(random.between(1, 4) / 2, () => {
      if (this.isGone) later('gone');
      else {
        const call = this.#world.nextCall();
        const input = make(call);
        this.services.await(call, (reply) => {
          later(reply);
          const isRefused = reply !== 'gone' && reply.kind === 'refused';
          if (isRefused && input.kind === 'open-session') this.shell.dispatch({ ...input, kind: 'leave-queue' });
        });
        this.hear(() => {
          this.shell.dispatch(input);
        });
      }
    });
  }

  answer(edge: EdgeAddress, peer: HostName, link: SimLink): Answer {
    const error = edgeFault(this.state, edge, peer);
    const ring = this.state.rings.get(edge.ring);
    if (error !== null) {
      if (ring?.kind === 'live') this.#world.checks.deadlines.refused(this.host, ring, error.facts['phase']);
      return { kind: 'refused', error };
    }
    if (ring?.kind !== 'live') return { kind: 'refused', error: new P4Error('RING_UNKNOWN', { ring: edge.ring }) };
    this.#world.checks.acceptedEdge(edge, ring, peer);
    return this.#routesOf(ring).incoming(edge, link);
  }

  /** R2: stages of a load that stands, and of its generation, are taken up; all others are ended. */
  #adoptStages(living: readonly ToyStage[]): void {
    const found = new Map<LoadId, ToyStage[]>();
    for (const stage of living) {
      const { load, ring } = stage.order;
      const claimed = this.state.rings.get(ring);
      const fits =
        claimed?.kind === 'claimed' &&
        claimed.load === load &&
        stage.life === 'loaded' &&
        claimed.generationDigest.hash === stage.generation.toString();
      const others = found.get(load) ?? [];
      if (!fits || others.some(({ node }) => node === stage.node)) {
        stage.kill(new P4Error('STAGE_LOST', { why: 'of a former load' }));
      } else found.set(load, [...others, stage]);
    }
    const highestStart = Math.max(0, ...[...found.values()].flat().map(({ incarnation }) => incarnation));
    for (const [load, stages] of found) this.#adopt(load, stages, highestStart);
  }

  #adopt(load: LoadId, stages: readonly ToyStage[], highestStart: number): void {
    const { ring, generation } = this.#world.loadNamed(load);
    const claimed = this.state.rings.get(ring);
    if (claimed?.kind !== 'claimed' || claimed.load !== load) return;
    for (const stage of stages) this.#stages.adopt(stage);
    this.shell.dispatch({
      ...{ kind: 'adopted', ring, load, generation, ...this.#assignmentOf(load), atMs: this.#world.clock.nowMs },
      stages: new Map(stages.map(({ node, incarnation }) => [node, incarnation])),
      highestStart,
    });
  }

  /** As the journal has it: what it was told last. */
  #assignmentOf(load: LoadId): Assignment {
    const kept = present(this.#machine.journal.loads.get(load), 'a load that stands was admitted');
    const { plan } = this.#world.loadNamed(load);
    const admitted: Assignment = { plan, placements: JSON.parse(kept.admitted.assignment) as Assignment['placements'] };
    const told = kept.records.findLast((record) => record.kind === 'load-told');
    return told === undefined ? admitted : underTerms(admitted, told);
  }

  #enter(load: LoadId, node: NodeIndex, send: (frame: Frame) => void): boolean {
    const { ring } = this.#world.loadNamed(load);
    const live = this.state.rings.get(ring);
    if (live?.kind !== 'live' || live.load !== load) return false;
    this.#routesOf(live).addStage(node, send);
    return true;
  }

  #routesOf(ring: LiveRing): RingRoutesModel {
    const standing = this.#routes.get(ring.load);
    if (standing !== undefined) return standing;
    const at = { ring: ring.ring, load: ring.load };
    const { clock } = this.#world;
    const routes = new RingRoutesModel(ring, this.host, {
      returned: ({ items, slowest }) => {
        const { doublesOneIn } = this.#world.plan;
        this.shell.dispatch({ kind: 'returned', ...at, items, slowest, atMs: clock.nowMs });
        // E1: told twice, it changes nothing.
        if (doublesOneIn > 0 && this.#world.random.oneIn(doublesOneIn))
          this.shell.dispatch({ kind: 'returned', ...at, items, slowest, atMs: clock.nowMs });
      },
      frameFinished: () => {
        this.shell.dispatch({ kind: 'frame-finished', ...at });
      },
      lost: (error) => {
        if (this.#routes.get(ring.load) === routes)
          this.shell.dispatch({ kind: 'link-lost', ...at, error, atMs: clock.nowMs });
      },
      after: (ms, run) => {
        this.after(ms, run);
      },
    });
    this.#routes.set(ring.load, routes);
    return routes;
  }

  #dial({ ring, load, edges }: Extract<Effect, { kind: 'dial-links' }>): void {
    const live = this.state.rings.get(ring);
    if (live?.kind !== 'live' || live.load !== load) return;
    for (const edge of edgesToDial(live, edges)) {
      const routes = this.#routesOf(live);
      if (routes.dialling.has(edge.source)) continue;
      routes.dialling.add(edge.source);
      this.#world.ringNamed(ring).expectDial(this.host, edge.port);
      this.#world.network.dial(this, edge, (dialled) => {
        routes.dialling.delete(edge.source);
        const isCurrent = this.#routes.get(load) === routes;
        const atMs = this.#world.clock.nowMs;
        if (dialled instanceof P4Error) {
          if (isCurrent)
            this.shell.dispatch({ kind: 'dial-failed', ring, load, source: edge.source, error: dialled, atMs });
        } else if (isCurrent) this.#linkUp(routes, dialled);
        else dialled.close();
      });
    }
  }

  #linkUp(routes: RingRoutesModel, link: SimLink): void {
    const { ring, load } = routes.ring;
    const { source, destination } = link.edge;
    link.outgoing = {
      loading: () => {
        if (this.#routes.get(load) !== routes) return;
        this.shell.dispatch({ kind: 'neighbour-loads', ring, load, source, atMs: this.#world.clock.nowMs });
      },
      lost: (error) => {
        if (this.#routes.get(load) !== routes) return;
        const named = new P4Error(error.code, { ring, node: destination, host: link.receiver.host, ...error.facts });
        this.shell.dispatch({ kind: 'link-lost', ring, load, error: named, atMs: this.#world.clock.nowMs });
      },
    };
    routes.addLink(link);
    const up = { source, destination, address: link.receiver.host, peer: link.receiver.host };
    this.shell.dispatch({ kind: 'link-up', ring, load, link: up, atMs: this.#world.clock.nowMs });
  }

  #taken(before: AgentState, input: Input, step: Step): void {
    this.#world.trace(() => `${this.host} ${traced(input, step)}`);
    this.#world.checks.taken({ agent: this, before, input, step });
  }

  // A table of what runs what, one line each.
  // eslint-disable-next-line complexity
  #run(effect: Effect): void {
    checkAdmission(this.#machine.journal, effect, this.#world);
    switch (effect.kind) {
      case 'reply':
        this.services.answer(effect.call, effect.reply);
        return;
      case 'start-stage':
        this.#stages.start(effect);
        return;
      case 'stop-stage':
        this.#stages.stop(effect);
        return;
      case 'attach-stage':
        this.#stages.attach(effect);
        return;
      case 'dial-links':
        this.#dial(effect);
        return;
      case 'cut-ring':
        this.#routes.get(effect.load)?.close(effect.error);
        this.#routes.delete(effect.load);
        return;
      case 'tell-loading':
        this.#routes.get(effect.load)?.tellLoading(effect.source);
        return;
      case 'send-frame':
        this.#routes.get(effect.load)?.send(effect);
        return;
      case 'await-probe':
      case 'await-retry':
      case 'await-deadline':
      case 'await-lease':
        this.#await(effect);
        return;
      case 'end-lease':
        this.services.endLease(effect.of.load, effect.of.session);
        return;
      case 'serve-queue':
        this.shell.dispatch(effect);
        return;
      case 'publish-begin':
      case 'publish-token':
      case 'publish-end':
      case 'publish-pause':
      case 'publish-resume':
        this.services.publish(effect);
    }
  }

  #await(effect: Extract<Effect, { kind: `await-${string}` }>): void {
    const { clock } = this.#world;
    switch (effect.kind) {
      case 'await-probe': {
        const { ring, load, nonce } = effect;
        this.after(this.#world.plan.probeMs, () => {
          this.shell.dispatch({ kind: 'probe-timeout', ring, load, nonce, atMs: clock.nowMs });
        });
        return;
      }
      case 'await-retry': {
        const { ring, load, suspension, attempt, ms } = effect;
        this.after(ms, () => {
          this.shell.dispatch({ kind: 'retry', ring, load, suspension, attempt, atMs: clock.nowMs });
        });
        return;
      }
      case 'await-deadline': {
        const { ring, load, suspension, ms } = effect;
        this.after(ms, () => {
          this.shell.dispatch({ kind: 'recovery-deadline', ring, load, suspension, atMs: clock.nowMs });
        });
        return;
      }
      case 'await-lease':
        this.services.awaitLease(effect.of.load, effect.of.session);
        return;
    }
  }
}

/** J2: nothing starts, and nothing is answered, of what the journal does not hold. */
function checkAdmission(journal: HostModel['journal'], effect: Effect, world: World): void {
  if (effect.kind === 'start-stage' && journal.loads.get(effect.order.load)?.isEnded !== false) {
    world.fail(new Violation('J2', 'a stage starts of a load that is not in the journal'));
  }
  if (effect.kind !== 'reply') return;
  const { reply } = effect;
  const loads = [...journal.loads.values()];
  const isKept =
    reply.kind === 'session-opened'
      ? loads.some(({ lastSession }) => lastSession >= reply.session)
      : reply.kind !== 'submitted' || loads.some(({ requests }) => requests.has(reply.request));
  if (!isKept) world.fail(new Violation('J2', `${reply.kind} is answered and not in the journal`));
}
