/** A loaded ring as an arm of the benchmark, seen as a client sees it: through its agent, token by token. */
import { present } from '../../protocol/assert.ts';
import { defaultSampling } from '../../protocol/sampling.ts';
import { requireFinished } from '../../provisioner/answer-printer.ts';
import { unlessAborted } from '../../provisioner/interrupt.ts';
import { runRequest, type RequestResult } from '../../provisioner/ring-request.ts';
import type { LoadedRing, LocalRings } from '../fixture/local-rings.ts';
import type { Arm, ArmName, BenchProcess, DecodeOrder, DecodeRun, LinkTimes, PrefillRun } from './measurement.ts';
import { cpuMs } from './process-usage.ts';

export interface RingArmOrder {
  readonly name: ArmName;
  readonly model: { readonly path: string; readonly layers: number; readonly contextTokens: number };
  /** The model is cut into so many stages of the same number of layers, one thread each, ... */
  readonly stages: number;
  /** ... spread over so many agents, in ring order. */
  readonly agents: number;
  readonly signal: AbortSignal;
}

interface RingArmParts extends Pick<RingArmOrder, 'name' | 'signal'> {
  readonly ring: LoadedRing;
  /** The agents and the stages, each in ring order, and the client. */
  readonly processes: readonly BenchProcess[];
}

export class RingArm implements Arm {
  readonly name: ArmName;
  readonly processes: readonly BenchProcess[];
  readonly #ring: LoadedRing;
  readonly #signal: AbortSignal;

  private constructor({ name, ring, processes, signal }: RingArmParts) {
    this.name = name;
    this.processes = processes;
    this.#ring = ring;
    this.#signal = signal;
  }

  static async load(rings: LocalRings, order: RingArmOrder): Promise<RingArm> {
    const { name, model, stages, agents, signal } = order;
    const each = model.layers / stages;
    const loaded = rings.load({
      ring: `bench-${name.replace(' ', '-')}`,
      model: model.path,
      cut: Array.from({ length: stages }, (_, index) => ({ first: index * each, last: (index + 1) * each - 1 })),
      agents,
      contextTokens: model.contextTokens,
      sessions: 1,
      decode: 'fast',
    });
    const ring = await unlessAborted(loaded, signal);
    return new RingArm({ name, ring, processes: await processesOf(ring), signal });
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

  async decode({ prompt, tokens: count }: DecodeOrder): Promise<DecodeRun> {
    const tokens: number[] = [];
    const timesMs: number[] = [];
    let startCpuMs: readonly number[] = [];
    let endCpuMs: readonly number[] = [];
    const result = await this.#run([prompt], count, (token) => {
      timesMs.push(performance.now());
      tokens.push(token);
      if (tokens.length === 1) startCpuMs = this.#cpuMs();
      if (tokens.length === count) endCpuMs = this.#cpuMs();
    });
    return {
      tokens,
      intervalsMs: timesMs.slice(1).map((ms, index) => ms - (timesMs[index] ?? 0)),
      computeMs: result.stages.map(({ computeMs, prefilled, decoded }) => computeMs / (prefilled + decoded)),
      cpuMs: endCpuMs.map((ms, index) => (ms - (startCpuMs[index] ?? 0)) / (count - 1)),
    };
  }

  async prefill(prompt: readonly number[]): Promise<PrefillRun> {
    let token: number | null = null;
    const { times } = await this.#run(prompt, 1, (drawn) => {
      token = drawn;
    });
    return {
      token: present<number>(token, 'a token was drawn'),
      ms: present(times.firstMs, 'a token has its time') - times.submittedMs,
    };
  }

  async #run(prompt: readonly number[], maxTokens: number, onToken: (token: number) => void): Promise<RequestResult> {
    const result = await runRequest({
      ring: this.#ring.calls,
      order: {
        prompt: { kind: 'tokens', ids: prompt },
        parseSpecial: false,
        sampling: { ...defaultSampling, temperature: 0 },
        maxTokens,
        stopStrings: [],
        ignoreEnd: true,
      },
      signal: this.#signal,
      onNews: (news) => {
        if (news.kind === 'token') onToken(news.token.token);
      },
    });
    requireFinished(result);
    return result;
  }

  #cpuMs(): readonly number[] {
    return this.processes.map(({ pid }) => cpuMs(pid));
  }
}

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
