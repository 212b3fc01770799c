/** The uncut model as an arm of the benchmark: a process of its own, told what to run. */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { stageEnvironment } from '../../protocol/stage-environment.ts';
import { unlessAborted } from '../../provisioner/interrupt.ts';
import { forkChild, nextAnswer } from './bench-child.ts';
import type { Arm, BenchProcess, DecodeOrder, DecodeRun, PrefillRun } from './arm.ts';
import type { UncutAnswer, UncutModel, UncutOrder } from './uncut-messages.ts';

type AnswerTo<Kind extends UncutOrder['kind']> = Extract<UncutAnswer, { kind: Kind }>;

const childMain = join(import.meta.dirname, 'uncut-process.js');

export class UncutArm implements Arm {
  readonly processes: readonly BenchProcess[];
  /** Where its process sends back what comes. */
  readonly echoPort: number;
  readonly #child: ChildProcess;
  readonly #signal: AbortSignal;

  private constructor(child: ChildProcess, echoPort: number, signal: AbortSignal) {
    this.#child = child;
    this.#signal = signal;
    this.echoPort = echoPort;
    this.processes = [{ role: 'model', name: 'uncut model', pid: present(child.pid, 'a forked process has a number') }];
  }

  /** @throws what opening the model fails with; then the process has ended */
  static async open(model: UncutModel, signal: AbortSignal): Promise<UncutArm> {
    const child = forkChild({ main: childMain, environment: stageEnvironment });
    try {
      const { echoPort } = await ask({ child, signal }, { kind: 'open', model });
      return new UncutArm(child, echoPort, signal);
    } catch (error) {
      await ended(child);
      throw error;
    }
  }

  async decode(order: DecodeOrder): Promise<DecodeRun> {
    return (await this.#ask({ kind: 'decode', order })).run;
  }

  async prefill(prompt: readonly number[]): Promise<PrefillRun> {
    return (await this.#ask({ kind: 'prefill', prompt })).run;
  }

  close(): Promise<void> {
    return ended(this.#child);
  }

  #ask<Order extends UncutOrder>(order: Order): Promise<AnswerTo<Order['kind']>> {
    return ask({ child: this.#child, signal: this.#signal }, order);
  }
}

/** It is in the middle of a computation, maybe, and holds nothing that has to be put away. */
async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exit;
}

interface Asked {
  readonly child: ChildProcess;
  readonly signal: AbortSignal;
}

async function ask<Order extends UncutOrder>({ child, signal }: Asked, order: Order): Promise<AnswerTo<Order['kind']>> {
  const answered = nextAnswer<UncutAnswer>(child, 'uncut model');
  child.send(order);
  const answer = await unlessAborted(answered, signal);
  if (answer.kind === 'failed') throw new P4Error(answer.code, answer.facts);
  return answer as AnswerTo<Order['kind']>;
}
