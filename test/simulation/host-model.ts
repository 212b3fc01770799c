/** A machine: its disk with the journal, the stages that run on it, and at most one agent process. */
import type { StartStage } from '../../agent/effects.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { HostName, RingName } from '../../protocol/ids.ts';
import { AgentModel } from './agent-model.ts';
import { JournalModel } from './journal-model.ts';
import { ToyStage } from './toy-stage.ts';
import type { World } from './world.ts';

export class HostModel {
  readonly host: HostName;
  readonly journal = new JournalModel();
  readonly #world: World;
  stages: readonly ToyStage[] = [];
  process: AgentModel | null = null;
  isPowered = true;
  readonly #failingUntilMs = new Map<RingName, number>();
  readonly #hangingUntilMs = new Map<RingName, number>();

  constructor(world: World, host: HostName) {
    this.#world = world;
    this.host = host;
  }

  /** The agent that answers calls, `null` while there is none. */
  get agent(): AgentModel | null {
    return this.process?.isListening === true ? this.process : null;
  }

  livingStages(): readonly ToyStage[] {
    this.stages = this.stages.filter(({ life }) => life !== 'dead');
    return this.stages;
  }

  spawn(start: StartStage): ToyStage {
    const { clock, random, checks } = this.#world;
    const stage = new ToyStage(start, {
      ...{ clock, random, host: this.host, slowLoadMs: this.#world.plan.slowLoadMs },
      loadsNotUntilMs: this.#hangingUntilMs.get(start.order.ring) ?? 0,
      broken: (violation) => {
        checks.fail(violation);
      },
    });
    this.stages = [...this.stages, stage];
    if ((this.#failingUntilMs.get(start.order.ring) ?? 0) > clock.nowMs)
      clock.after(random.between(10, 1_500), () => {
        if (stage.life === 'starting') stage.kill(new P4Error('STAGE_LOST', { exit: 'SIGBUS' }));
      });
    return stage;
  }

  /** For a while, no stage of the ring comes to an end of its load. */
  hangLoads(ring: RingName, forMs: number): void {
    this.#hangingUntilMs.set(ring, this.#world.clock.nowMs + forMs);
  }

  /** For a while, stages of the ring end while they load. */
  failLoads(ring: RingName, forMs: number): void {
    this.#failingUntilMs.set(ring, this.#world.clock.nowMs + forMs);
  }

  startAgent(): void {
    if (this.process !== null || !this.isPowered) return;
    const agent = new AgentModel(this.#world, this);
    this.process = agent;
    this.#world.trace(() => `${this.host} agent starts`);
    this.#world.guarded(() => {
      agent.begin();
    });
  }

  /** Its process is killed; the service manager starts it again. */
  killAgent(againAfterMs: number): void {
    const { process: agent } = this;
    if (agent === null) return;
    this.#world.trace(() => `${this.host} agent is killed`);
    agent.end();
    this.process = null;
    this.#world.checks.deadlines.agentEnded(agent);
    this.#world.network.drop(agent, false);
    this.#world.clock.after(againAfterMs, () => {
      this.startAgent();
    });
  }

  losePower(forMs: number): void {
    if (!this.isPowered) return;
    const { process: agent } = this;
    this.#world.trace(() => `${this.host} loses power for ${forMs} ms`);
    this.isPowered = false;
    this.process = null;
    agent?.end();
    if (agent !== null) {
      this.#world.checks.deadlines.agentEnded(agent);
      this.#world.network.drop(agent, true);
    }
    for (const stage of this.livingStages()) stage.kill(new P4Error('STAGE_LOST', { why: 'no power' }));
    this.#world.clock.after(forMs, () => {
      this.isPowered = true;
      this.startAgent();
    });
  }
}
