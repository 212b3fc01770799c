/** The uncut model as an arm of the benchmark: a process of its own, told what to run. */
import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { stageEnvironment } from '../../protocol/stage-environment.ts';
import { unlessAborted } from '../../provisioner/interrupt.ts';
import type { Arm, BenchProcess, DecodeOrder, DecodeRun, PrefillRun } from './measurement.ts';
import type { UncutAnswer, UncutModel, UncutOrder } from './uncut-messages.ts';

type AnswerTo<Kind extends UncutOrder['kind']> = Extract<UncutAnswer, { kind: Kind }>;

const childMain = join(import.meta.dirname, 'uncut-process.js');

export class UncutArm implements Arm {
  readonly name = 'uncut';
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
    const child = fork(childMain, {
      // A group of its own: Ctrl-C reaches the benchmark, which ends it.
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...process.env, ...stageEnvironment },
    });
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

function ask<Order extends UncutOrder>({ child, signal }: Asked, order: Order): Promise<AnswerTo<Order['kind']>> {
  const answered = new Promise<AnswerTo<Order['kind']>>((resolve, reject) => {
    const hear = (answer: UncutAnswer): void => {
      child.off('exit', gone);
      if (answer.kind === 'failed') reject(new P4Error(answer.code, answer.facts));
      // One order at a time: what comes answers the one that was sent.
      else resolve(answer as AnswerTo<Order['kind']>);
    };
    const gone = (status: number | null, by: string | null): void => {
      child.off('message', hear);
      reject(new P4Error('STAGE_LOST', { process: 'uncut model', exit: by ?? status ?? 'unknown' }));
    };
    child.once('message', hear);
    child.once('exit', gone);
    child.send(order);
  });
  return unlessAborted(answered, signal);
}
