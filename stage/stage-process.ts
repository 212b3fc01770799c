/**
 * The main thread of a stage: orders from the control socket go to the thread that computes, its answers come back.
 *
 * States: empty, loading, loaded, ending. What a stage cannot go on from it says on the control socket, then it ends with
 * status 70; what it is told to end by (`stop`, a signal) ends it with status 0.
 */
import { randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';

import { unreachable } from '../protocol/assert.ts';
import { P4Error, type ErrorCode, type ErrorFacts } from '../protocol/errors.ts';
import { tokenId } from '../protocol/ids.ts';
import { cpusText } from '../protocol/inventory.ts';
import { limits } from '../protocol/limits.ts';
import {
  stageProtocolVersion,
  type StageFacts,
  type StageHolding,
  type StageLoad,
  type StageReport,
  type StageWelcome,
} from '../protocol/stage-control.ts';
import { ControlServer, type ControlOrder, type Reply } from './control-server.ts';
import { gpuVariables } from './gpu-visibility.ts';
import { removeSockets, type RuntimeFolder } from './runtime-folder.ts';
import { StageCounters } from './stage-counters.ts';
import type { StageLog } from './stage-log.ts';
import type { ThreadMessage, ThreadOrder } from './thread-messages.ts';

type StageState =
  | { readonly kind: 'empty' }
  | { readonly kind: 'loading'; readonly load: StageLoad; readonly counters: StageCounters }
  | LoadedState
  | { readonly kind: 'ending'; readonly status: number };

interface LoadedState {
  readonly kind: 'loaded';
  readonly load: StageLoad;
  readonly counters: StageCounters;
  readonly facts: StageFacts;
}

/** Exit status of a stage that cannot go on (`EX_SOFTWARE`). */
const failedStatus = 70;

/** Time for the control connections to take the last word. */
const lastWordMs = 500;

/** A question on its way through the other thread. */
interface Question {
  readonly id: number;
  readonly reply: Reply;
}

export class StageProcess {
  readonly #folder: RuntimeFolder;
  readonly #log: StageLog;
  readonly #incarnation = randomBytes(16).toString('hex');
  readonly #worker: Worker;
  /** As it came: what a load that failed has set does not count. */
  readonly #environment = { ...process.env };
  readonly #questions = new Map<number, Question>();
  #control: ControlServer | null = null;
  #state: StageState = { kind: 'empty' };
  #lastTicket = 0;

  constructor(folder: RuntimeFolder, log: StageLog) {
    this.#folder = folder;
    this.#log = log;
    process.once('exit', () => {
      removeSockets(folder);
    });
    this.#worker = new Worker(new URL('./compute-thread.js', import.meta.url));
    this.#worker.on('message', (message: ThreadMessage) => {
      this.#hear(message);
    });
    this.#worker.on('error', (error: unknown) => {
      const said = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#die('STAGE_BUG', { said });
    });
  }

  /** @throws STAGE_RUNTIME_FOLDER */
  async listen(): Promise<void> {
    this.#control = await ControlServer.listen(this.#folder.controlSocketPath, {
      welcome: () => this.#welcome(),
      order: (order, reply) => {
        this.#obey(order, reply);
      },
      log: (event, facts) => {
        this.#log.write(event, facts);
      },
    });
    this.#log.write('listening', { incarnation: this.#incarnation });
  }

  /** Ends within the decode at hand. A slice that is being loaded is dropped as it is. */
  stop(why: string): void {
    if (this.#state.kind === 'ending') return;
    this.#log.write('stopping', { why });
    // The other thread hears nothing while libllama loads, and even the exit of the process would wait for it.
    if (this.#state.kind === 'loading') this.#killSelf();
    this.#state = { kind: 'ending', status: 0 };
    this.#order({ kind: 'stop' });
    setTimeout(() => {
      this.#killSelf();
    }, limits.stageStopMs / 2).unref();
  }

  #welcome(): StageWelcome {
    return {
      kind: 'welcome',
      protocol: stageProtocolVersion,
      pid: process.pid,
      incarnation: this.#incarnation,
      holds: this.#state.kind === 'loaded' ? holdingOf(this.#state) : null,
    };
  }

  #obey(order: ControlOrder, reply: Reply): void {
    switch (order.kind) {
      case 'load':
        this.#load(order);
        return;
      case 'vocabulary':
        this.#ask({ id: order.id, reply }, (ticket) => ({ kind: 'vocabulary', ticket }));
        return;
      case 'tokenize':
        this.#ask({ id: order.id, reply }, (ticket) => ({ ...order, ticket }));
        return;
      case 'report':
        reply({ kind: 'report', id: order.id, ...this.#report() });
        return;
      case 'stop':
        this.stop('its agent');
        return;
      default:
        unreachable(order);
    }
  }

  #load(load: StageLoad): void {
    if (this.#state.kind !== 'empty') throw new P4Error('STAGE_HOLDS_LOAD', {});
    // Here and not on the other thread, whose environment is a copy that no library sees.
    if (load.device.kind === 'gpu') Object.assign(process.env, gpuVariables(load.device.index, this.#environment));
    const counters = new StageCounters();
    this.#state = { kind: 'loading', load, counters };
    this.#log.place(load);
    this.#log.write('loading', { slice: load.sliceId });
    this.#order({ kind: 'load', load, dataSocketPath: this.#folder.dataSocketPath, counters: counters.buffer });
  }

  #ask(question: Question, order: (ticket: number) => ThreadOrder): void {
    if (this.#state.kind !== 'loaded') throw new P4Error('STAGE_EMPTY', {});
    this.#lastTicket += 1;
    this.#questions.set(this.#lastTicket, question);
    this.#order(order(this.#lastTicket));
  }

  #report(): StageReport {
    const { kind } = this.#state;
    if (kind !== 'loaded') throw new P4Error('STAGE_EMPTY', {});
    const { user, system } = process.cpuUsage();
    return {
      residentBytes: process.memoryUsage.rss(),
      cpuSeconds: (user + system) / 1e6,
      ...this.#state.counters.read(),
      threads: this.#state.load.threads,
      cpus: cpusText(this.#state.load.confinement?.cpus ?? []),
    };
  }

  #order(order: ThreadOrder): void {
    this.#worker.postMessage(order);
  }

  #hear(message: ThreadMessage): void {
    switch (message.kind) {
      case 'loading':
        this.#control?.tell(message);
        return;
      case 'loaded':
        if (this.#state.kind !== 'loading') return;
        this.#state = { ...this.#state, kind: 'loaded', facts: message.facts };
        process.title = `p4-stage ${this.#state.load.ring}.${this.#state.load.node}`;
        this.#log.write('loaded', { loadMs: Math.round(message.facts.loadMs) });
        this.#control?.tell(message);
        return;
      case 'load-failed':
        if (this.#state.kind !== 'loading') return;
        this.#state = { kind: 'empty' };
        this.#log.write('load-failed', { code: message.code, ...message.facts });
        this.#control?.tell(message);
        return;
      case 'tokens':
        this.#answer(message.ticket, ({ id, reply }) => {
          reply({ kind: 'tokens', id, tokens: Array.from(message.tokens, tokenId) });
        });
        return;
      case 'vocabulary':
        this.#answer(message.ticket, ({ id, reply }) => {
          reply({ kind: 'vocabulary', id, ...message.table });
        });
        return;
      case 'refused':
        this.#answer(message.ticket, ({ id, reply }) => {
          reply({ kind: 'refused', id, code: message.code, facts: message.facts });
        });
        return;
      case 'log':
        this.#log.write(message.event, message.facts);
        return;
      case 'dying':
        this.#die(message.code, message.facts);
        return;
      case 'stopped':
        void this.#exit();
        return;
      default:
        unreachable(message);
    }
  }

  #answer(ticket: number, give: (question: Question) => void): void {
    const question = this.#questions.get(ticket);
    this.#questions.delete(ticket);
    if (question !== undefined) give(question);
  }

  #die(code: ErrorCode, facts: ErrorFacts): void {
    if (this.#state.kind === 'ending') return;
    this.#state = { kind: 'ending', status: failedStatus };
    this.#log.write('dying', { code, ...facts });
    this.#control?.tell({ kind: 'dying', code, facts });
    void this.#exit();
  }

  async #exit(): Promise<void> {
    const status = this.#state.kind === 'ending' ? this.#state.status : failedStatus;
    setTimeout(() => process.exit(status), lastWordMs).unref();
    await this.#control?.close();
    process.exit(status);
  }

  #killSelf(): void {
    removeSockets(this.#folder);
    process.kill(process.pid, 'SIGKILL');
  }
}

const holdingOf = ({ load, facts }: LoadedState): StageHolding => ({
  ring: load.ring,
  node: load.node,
  generation: load.generation,
  facts,
});
