/** A loaded ring as an arm of the benchmark, seen as a client sees it: through its agent, token by token. */
import { present } from '../../protocol/assert.ts';
import type { NodeStatus } from '../../protocol/messages.ts';
import type { DecodeMode } from '../../protocol/plan.ts';
import { unlessAborted } from '../../provisioner/interrupt.ts';
import type { LoadedRing, LocalRings } from '../fixture/local-rings.ts';
import { intervalsOf, type Arm, type BenchProcess, type DecodeOrder, type DecodeRun } from './arm.ts';
import type { LinkTimes, PrefillRun } from './arm.ts';
import { cpuMs } from './process-usage.ts';
import { RingSession, type SettledRun } from './ring-session.ts';
import { stageFigures, steadyRate, type StageLoadFigures, type StageMark } from './steady-state.ts';

export interface RingArmOrder {
  /** Lower-case words and numbers. */
  readonly name: string;
  readonly model: { readonly path: string; readonly layers: number };
  readonly contextTokens: number;
  /** The model is cut into so many stages of the same number of layers, one thread each, ... */
  readonly stages: number;
  /** ... spread over so many agents, in ring order. */
  readonly agents: number;
  readonly sessions: number;
  readonly decode?: DecodeMode;
}

/** Sessions that draw side by side. */
export interface TogetherOrder {
  /** One for each session. */
  readonly prompts: readonly (readonly number[])[];
  /** Tokens that each draws. */
  readonly tokens: number;
}

export interface TogetherRun {
  /** While all of them ran. */
  readonly tokensPerSecond: number;
  /** Of the head's agent, for a token, while all of them ran. */
  readonly agentCpuMs: number;
  /** From the first request to the last receipt, in ring order. */
  readonly stages: readonly StageLoadFigures[];
}

/** Of one journal or several. */
export interface JournalSize {
  readonly records: number;
  readonly bytes: number;
}

interface RingArmParts {
  readonly ring: LoadedRing;
  /** The agents and the stages, each in ring order, and the client. */
  readonly processes: readonly BenchProcess[];
  readonly signal: AbortSignal;
}

export class RingArm implements Arm {
  readonly processes: readonly BenchProcess[];
  readonly #ring: LoadedRing;
  readonly #signal: AbortSignal;

  private constructor({ ring, processes, signal }: RingArmParts) {
    this.processes = processes;
    this.#ring = ring;
    this.#signal = signal;
  }

  static async load(rings: LocalRings, order: RingArmOrder, signal: AbortSignal): Promise<RingArm> {
    const { name, model, stages, agents, sessions, contextTokens, decode = 'fast' } = order;
    const each = model.layers / stages;
    const loaded = rings.load({
      ring: `bench-${name.replaceAll(' ', '-')}`,
      model: model.path,
      cut: Array.from({ length: stages }, (_, index) => ({ first: index * each, last: (index + 1) * each - 1 })),
      ...{ agents, contextTokens, sessions, decode },
    });
    const ring = await unlessAborted(loaded, signal);
    return new RingArm({ ring, processes: await processesOf(ring), signal });
  }

  /** Ends the stages. */
  close(): Promise<void> {
    return this.#ring.unload();
  }

  /** The links between agents, in ring order. */
  async links(): Promise<readonly LinkTimes[]> {
    const statuses = await this.#ring.status();
    return statuses
      .flatMap(({ rings }) => rings.flatMap(({ links }) => links))
      .map(({ source, destination, frames, ackP50Ms, ackP99Ms }) => {
        return { source, destination, frames: Number(frames), ackP50Ms, ackP99Ms };
      })
      .sort((one, other) => one.source - other.source);
  }

  open(): Promise<RingSession> {
    return RingSession.open(this.#ring.calls, this.#signal);
  }

  async decode({ prompt, tokens: count }: DecodeOrder): Promise<DecodeRun> {
    let startCpuMs: readonly number[] = [];
    let endCpuMs: readonly number[] = [];
    const { tokens, timesMs, stages } = await this.#alone((session) =>
      session.ask({
        prompt,
        tokens: count,
        onToken: (number) => {
          if (number === 1) startCpuMs = this.#cpuMs();
          if (number === count) endCpuMs = this.#cpuMs();
        },
      }),
    );
    return {
      tokens,
      intervalsMs: intervalsOf(timesMs),
      computeMs: stages.map(({ computeMs, prefilled, decoded }) => computeMs / (prefilled + decoded)),
      cpuMs: endCpuMs.map((ms, index) => (ms - (startCpuMs[index] ?? 0)) / (count - 1)),
    };
  }

  async prefill(prompt: readonly number[]): Promise<PrefillRun> {
    const run = await this.#alone((session) => session.ask({ prompt, tokens: 1 }));
    return { token: present(run.tokens[0], 'a token was drawn'), ms: firstTokenMs(run) };
  }

  async together({ prompts, tokens }: TogetherOrder): Promise<TogetherRun> {
    const sessions = await Promise.all(prompts.map(() => this.open()));
    const marks: AgentMark[] = [];
    let begun = 0;
    const onToken = (count: number): void => {
      if (count === 1) begun += 1;
      const isFirstOfAll = count === 1 && begun === sessions.length;
      const isFirstEnd = count === tokens && marks.length === 1;
      if (isFirstOfAll || isFirstEnd) marks.push({ ms: performance.now(), cpuMs: this.#agentCpuMs() });
    };
    const asks = sessions.map((session, index) => ({
      session,
      ask: { prompt: present(prompts[index], 'a prompt each'), tokens, onToken },
    }));
    const { result: runs, stages } = await this.stagesDuring(() =>
      Promise.all(asks.map(({ session, ask }) => session.ask(ask))),
    );
    await Promise.all(sessions.map((session) => session.close()));
    const tokensPerSecond = steadyRate(runs.map(({ timesMs }) => timesMs));
    const [from, to] = [present(marks[0], 'all have begun'), present(marks[1], 'one has ended')];
    const agentCpuMs = (to.cpuMs - from.cpuMs) / ((tokensPerSecond * (to.ms - from.ms)) / 1000);
    return { tokensPerSecond, agentCpuMs, stages };
  }

  /** What the stages do while it works; they have to compute meanwhile. */
  async stagesDuring<Result>(
    work: () => Promise<Result>,
  ): Promise<{ readonly result: Result; readonly stages: readonly StageLoadFigures[] }> {
    const from = await this.#stageMarks();
    const startMs = performance.now();
    const result = await work();
    const elapsedMs = performance.now() - startMs;
    const to = await this.#stageMarks();
    const stages = from.map((mark, index) => stageFigures(mark, present(to[index], 'stages stay the same'), elapsedMs));
    return { result, stages };
  }

  /** What the journals of the ring's agents hold, all together. */
  async journal(): Promise<JournalSize> {
    const journals = (await this.#ring.status()).map(({ journal }) => present(journal, 'an agent has a journal'));
    return {
      records: journals.reduce((sum, { records }) => sum + Number(records), 0),
      bytes: journals.reduce((sum, { bytes }) => sum + Number(bytes), 0),
    };
  }

  async #alone(work: (session: RingSession) => Promise<SettledRun>): Promise<SettledRun> {
    const session = await this.open();
    const run = await work(session);
    await session.close();
    return run;
  }

  /** In ring order. */
  async #stageMarks(): Promise<readonly StageMark[]> {
    const nodes = (await this.#ring.status()).flatMap(({ rings }) => rings.flatMap(({ nodes }) => nodes));
    return [...nodes].sort((one, other) => one.node - other.node).map(stageMark);
  }

  /** Of the head's agent. */
  #agentCpuMs(): number {
    return cpuMs(present(this.processes[0], "the head's agent is the first").pid);
  }

  #cpuMs(): readonly number[] {
    return this.processes.map(({ pid }) => cpuMs(pid));
  }
}

interface AgentMark {
  readonly ms: number;
  readonly cpuMs: number;
}

const stageMark = ({ decodes, prefilledRows, decodedRows, computeSeconds }: NodeStatus): StageMark => ({
  decodes: Number(decodes),
  rows: Number(prefilledRows) + Number(decodedRows),
  computeMs: computeSeconds * 1000,
});

/** From the submission to the first token. */
export const firstTokenMs = ({ submittedMs, timesMs }: SettledRun): number =>
  present(timesMs[0], 'a token was drawn') - submittedMs;

async function processesOf(ring: LoadedRing): Promise<readonly BenchProcess[]> {
  const statuses = await ring.status();
  const agents = statuses.map(({ agent }): BenchProcess => {
    const { host, pid } = present(agent, 'an agent says what it is');
    return { role: 'agent', name: `agent ${host}`, pid };
  });
  const stages = statuses
    .flatMap(({ rings }) => rings.flatMap(({ nodes }) => nodes))
    .sort((one, other) => one.node - other.node)
    .map(({ node, pid }): BenchProcess => ({ role: 'stage', name: `stage ${node}`, pid }));
  return [...agents, ...stages, { role: 'client', name: 'this command', pid: process.pid }];
}
