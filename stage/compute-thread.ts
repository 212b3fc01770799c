/** The thread that computes: one slice, its data socket, and its tokenizer between two decodes. Started by `main.ts`. */
import { parentPort } from 'node:worker_threads';

import { present, unreachable } from '../protocol/assert.ts';
import { P4Error, type ErrorFacts } from '../protocol/errors.ts';
import { generation } from '../protocol/ids.ts';
import type { StageLoad } from '../protocol/stage-control.ts';
import { Candidates } from './candidates.ts';
import { ComputeLoop } from './compute-loop.ts';
import { confine } from './confinement.ts';
import { FrameServer } from './frame-server.ts';
import type { Engine } from './engine.ts';
import type { StageIdentity } from './frame-check.ts';
import { openSampler } from './sampler.ts';
import { openSlice } from './slice-opening.ts';
import { StageCore } from './stage-core.ts';
import { StageCounters } from './stage-counters.ts';
import type { ThreadMessage, ThreadOrder } from './thread-messages.ts';
import { vocabularyTable } from './vocabulary-table.ts';

interface Loaded {
  readonly load: StageLoad;
  readonly engine: Engine;
  readonly loop: ComputeLoop;
  readonly frames: FrameServer;
}

type LoadOrder = Extract<ThreadOrder, { kind: 'load' }>;
type Question = Extract<ThreadOrder, { kind: 'tokenize' | 'vocabulary' }>;

const port = present(parentPort, 'this file runs as a worker thread');
let loaded: Loaded | null = null;

const say = (message: ThreadMessage): void => {
  port.postMessage(message);
};

port.on('message', (order: ThreadOrder) => {
  switch (order.kind) {
    case 'load':
      void load(order);
      return;
    case 'tokenize':
    case 'vocabulary':
      say(answer(order));
      return;
    case 'stop':
      stop();
      return;
    default:
      unreachable(order);
  }
});

/** The main thread orders one load at a time, and none after one that succeeded. */
async function load(order: LoadOrder): Promise<void> {
  say({ kind: 'loading', fraction: 0 });
  try {
    // Before libllama is loaded: its memory counts, and its threads take after this one.
    if (order.load.confinement !== undefined) confine(order.load.confinement);
    const { engine, facts } = await openSlice(order.load);
    try {
      loaded = await serve(order, engine);
    } catch (error) {
      engine.close();
      throw error;
    }
    say({ kind: 'loading', fraction: 1 });
    say({ kind: 'loaded', facts });
  } catch (error) {
    if (!(error instanceof P4Error)) throw error;
    say({ kind: 'load-failed', code: error.code, facts: { ...error.facts, ...limitFacts(order.load) } });
  }
}

/** Where memory is short, it may be by the plan, of which the libraries know nothing. */
function limitFacts({ confinement }: StageLoad): ErrorFacts {
  const limit = confinement?.memoryLimitBytes ?? null;
  return limit === null ? {} : { memoryLimitMiB: limit / 2 ** 20 };
}

async function serve({ load, dataSocketPath, counters }: LoadOrder, engine: Engine): Promise<Loaded> {
  const identity: StageIdentity = { ...load, generation: generation(load.generation) };
  const core = new StageCore({
    identity,
    engine,
    openSampler: samplerOpener(engine),
    counters: new StageCounters(counters),
    nowUs: () => performance.now() * 1000,
  });
  const loop = new ComputeLoop(core, die);
  const frames = await FrameServer.listen(dataSocketPath, identity, {
    attached: () => {
      loop.restart();
    },
    frame: (bytes) => {
      loop.take(bytes);
    },
    read: (isDrained) => {
      if (isDrained) loop.runNow();
      else loop.schedule();
    },
    writable: () => {
      loop.schedule();
    },
    log: (event, facts) => {
      say({ kind: 'log', event, facts });
    },
  });
  loop.connect(frames);
  return { load, engine, loop, frames };
}

function samplerOpener(
  engine: Engine,
): (sampling: Parameters<typeof openSampler>[2]) => ReturnType<typeof openSampler> {
  let candidates: Candidates | null = null;
  return (sampling) => {
    candidates ??= new Candidates(engine.vocabulary.size);
    return openSampler(engine.vocabulary, candidates, sampling);
  };
}

function answer(question: Question): ThreadMessage {
  const { ticket } = question;
  try {
    if (loaded === null) throw new P4Error('STAGE_EMPTY', {});
    const { vocabulary } = loaded.engine;
    if (question.kind === 'vocabulary') return { kind: 'vocabulary', ticket, table: vocabularyTable(vocabulary) };
    const tokens = vocabulary.tokenize(question.text, question);
    const { contextTokens } = loaded.load;
    if (tokens.length > contextTokens) throw new P4Error('PROMPT_TOO_LONG', { tokens: tokens.length, contextTokens });
    return { kind: 'tokens', ticket, tokens };
  } catch (error) {
    if (!(error instanceof P4Error)) throw error;
    return { kind: 'refused', ticket, code: error.code, facts: error.facts };
  }
}

/**
 * The KV cache is undefined now, or the agent contradicts itself: this process is done. A bug is thrown on. The data socket
 * stays open to the end of the process, so that the agent learns the reason on the control socket first.
 */
function die(error: unknown): void {
  if (!(error instanceof P4Error)) throw error;
  say({ kind: 'dying', code: error.code, facts: error.facts });
}

function stop(): void {
  loaded?.loop.end();
  loaded?.frames.close();
  loaded?.engine.close();
  loaded = null;
  say({ kind: 'stopped' });
}
