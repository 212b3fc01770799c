/** A loaded ring as an arm of the benchmark, seen as a client sees it: through its agent, token by token. */
import { present } from '../../protocol/assert.ts';
import { defaultSampling } from '../../protocol/sampling.ts';
import { requireFinished } from '../../provisioner/answer-printer.ts';
import type { RingCalls } from '../../provisioner/ring-calls.ts';
import { runRequest, type RequestResult } from '../../provisioner/ring-request.ts';
import type { Arm, ArmName, BenchProcess, DecodeOrder, DecodeRun, PrefillRun } from './measurement.ts';
import { cpuMs } from './process-usage.ts';

export interface RingArmOptions {
  readonly name: ArmName;
  readonly calls: RingCalls;
  /** The agents and the stages, each in ring order, and the client. */
  readonly processes: readonly BenchProcess[];
  readonly signal: AbortSignal;
}

export class RingArm implements Arm {
  readonly name: ArmName;
  readonly processes: readonly BenchProcess[];
  readonly #calls: RingCalls;
  readonly #signal: AbortSignal;

  constructor({ name, calls, processes, signal }: RingArmOptions) {
    this.name = name;
    this.processes = processes;
    this.#calls = calls;
    this.#signal = signal;
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
      ring: this.#calls,
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
