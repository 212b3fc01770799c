/** For tests: cores of stages in a row, in one process, with the frames between them encoded and decoded as on a socket. */
import { assert, present } from '../protocol/assert.ts';
import { decodeFrame, encodeFrame, noStep, type Frame } from '../protocol/hop-frame.ts';
import {
  nothingRan,
  type BeginItem,
  type EndItem,
  type HopItem,
  type RowsItem,
  type TokenItem,
} from '../protocol/hop-items.ts';
import { generation, nodeIndex, requestId, ringName, sessionId, slotIndex, tokenId } from '../protocol/ids.ts';
import { defaultSampling, type Sampling } from '../protocol/sampling.ts';
import { Candidates } from './candidates.ts';
import type { Engine, EngineOptions } from './engine.ts';
import { openRing, storiesPath, withEngine } from './engine-fixture.ts';
import { openSampler, type Sampler } from './sampler.ts';
import { StageCore } from './stage-core.ts';
import { StageCounters, type StageCounts } from './stage-counters.ts';
import type { RequestSampler } from './tail-sampling.ts';

export const testGeneration = generation('17592186044417');
export const greedy: Sampling = { ...defaultSampling, temperature: 0 };

/** One stage: its core, and what it counted. */
export interface TestStage {
  readonly core: StageCore;
  readonly engine: Engine;
  readonly counts: () => StageCounts;
  /** Takes frames that wait together, and applies them to the end. */
  readonly run: (...frames: readonly Frame[]) => Frame[];
}

export interface StageBounds {
  readonly sessions?: number;
  readonly keptPrefixes?: number;
  readonly contextTokens?: number;
  /** Told what every token is drawn from, valid until it returns. */
  readonly onDraw?: (logits: Float32Array) => void;
}

export function testStages(engines: readonly Engine[], bounds: StageBounds = {}): TestStage[] {
  return engines.map((engine, index) => {
    const counters = new StageCounters();
    let candidates: Candidates | null = null;
    const core = new StageCore({
      identity: {
        ring: ringName('test'),
        node: nodeIndex(index),
        stages: engines.length,
        generation: testGeneration,
        sessions: bounds.sessions ?? 4,
        keptPrefixes: bounds.keptPrefixes ?? 0,
        contextTokens: bounds.contextTokens ?? 192,
      },
      engine,
      openSampler: (sampling) => {
        candidates ??= new Candidates(engine.vocabulary.size);
        return heard(openSampler(engine.vocabulary, candidates, sampling), bounds);
      },
      counters,
      nowUs: () => performance.now() * 1000,
    });
    const run = (...frames: readonly Frame[]): Frame[] => {
      for (const frame of frames) core.accept(frame);
      const out: Frame[] = [];
      while (core.waitingFrames > 0) out.push(decodeFrame(encodeFrame(core.step())));
      return out;
    };
    return { core, engine, counts: () => counters.read(), run };
  });
}

function heard(sampler: Sampler, { onDraw = () => undefined }: StageBounds): RequestSampler {
  return {
    acceptPrompt: (tokens) => {
      sampler.acceptPrompt(tokens);
    },
    acceptEmitted: (tokens) => {
      sampler.acceptEmitted(tokens);
    },
    sample: (logits, step) => {
      onDraw(logits);
      return sampler.sample(logits, step);
    },
    close: () => {
      sampler.close();
    },
  };
}

/** Sends frames through every stage in turn; what the tail gives. */
export function roundRing(stages: readonly TestStage[], ...frames: readonly Frame[]): Frame[] {
  return stages.reduce<readonly Frame[]>((waiting, stage) => stage.run(...waiting), frames).slice();
}

/** A frame for the head. `tokens`: one for each row of `items`, in order. */
export function headFrame(
  items: readonly HopItem[],
  tokens: readonly number[] = [],
  change: Partial<Frame> = {},
): Frame {
  const content = {
    source: nodeIndex(0),
    destination: nodeIndex(0),
    generation: testGeneration,
    number: 1n,
    completes: 0,
    slowest: noStep,
  };
  return decodeFrame(encodeFrame({ ...content, items, tokens: Uint32Array.from(tokens), hidden: null, ...change }));
}

export const itemsOf = (frames: readonly Frame[]): HopItem[] => frames.flatMap(({ items }) => [...items]);

export const tokensOf = (frames: readonly Frame[]): TokenItem[] =>
  itemsOf(frames).filter((item): item is TokenItem => item.kind === 'token');

/** Items of a session, whose request and slot have numbers that follow from its own. */
export class TestSession {
  readonly session;
  readonly slot;
  #request = 0;
  #next = 0;

  constructor(number: number) {
    this.session = sessionId(number + 1);
    this.slot = slotIndex(number);
  }

  get request() {
    return requestId(this.session * 100 + this.#request);
  }

  get open(): HopItem {
    return { kind: 'open', session: this.session, slot: this.slot };
  }

  get close(): HopItem {
    return { kind: 'close', session: this.session, slot: this.slot };
  }

  get end(): EndItem {
    return { kind: 'end', session: this.session, request: this.request, receipts: [], ran: null };
  }

  begin(sampling: Sampling = greedy, change: Partial<BeginItem> = {}): BeginItem {
    this.#request += 1;
    const of = { session: this.session, request: this.request, slot: this.slot };
    return { kind: 'begin', ...of, reusedRows: 0, ran: nothingRan, sampling, history: [], drawn: [], ...change };
  }

  truncate(length: number): HopItem {
    this.#next = length;
    return { kind: 'truncate', session: this.session, slot: this.slot, length };
  }

  prefill(rowCount: number, samples: boolean): RowsItem {
    return this.#rows({ step: 0, phase: 'prefill', rowCount, samples });
  }

  decode(step: number, alone = true): RowsItem {
    return { ...this.#rows({ step, phase: 'decode', rowCount: 1, samples: true }), alone };
  }

  recompute(rowCount: number, alone: boolean): RowsItem {
    return { ...this.#rows({ step: 0, phase: 'recompute', rowCount, samples: false }), alone };
  }

  #rows(of: Pick<RowsItem, 'step' | 'phase' | 'rowCount' | 'samples'>): RowsItem {
    const { session, request, slot } = this;
    const item: RowsItem = { kind: 'rows', session, request, slot, firstPosition: this.#next, alone: false, ...of };
    this.#next += of.rowCount;
    return item;
  }
}

/** Runs a request to `count` tokens through stages that nobody else uses. */
export function complete(
  stages: readonly TestStage[],
  request: { readonly session: TestSession; readonly prompt: readonly number[]; readonly sampling?: Sampling },
  count: number,
): number[] {
  const { session, prompt, sampling } = request;
  assert(prompt.length <= 63, 'the prompt is one chunk');
  const begin = [session.open, session.begin(sampling), session.prefill(prompt.length, true)];
  let out = roundRing(stages, headFrame(begin, prompt));
  const tokens: number[] = [];
  for (;;) {
    const { token, step } = present(tokensOf(out)[0], 'the tail draws a token');
    assert(step === tokens.length, 'tokens come in order');
    tokens.push(token);
    if (tokens.length === count) return tokens;
    out = roundRing(stages, headFrame([session.decode(tokens.length)], [tokenId(token)]));
  }
}

/** Cores over slices of the stories model, cut before the layers of `cuts`. */
export async function withStages(
  cuts: readonly number[],
  use: (stages: readonly TestStage[]) => void,
  options: Partial<EngineOptions> & StageBounds = {},
): Promise<void> {
  const ring = await openRing(cuts, {
    path: storiesPath,
    contextTokens: (options.contextTokens ?? 192) * (options.sessions ?? 4),
    ...options,
  });
  try {
    use(testStages(ring.engines, options));
  } finally {
    ring.close();
  }
}

/** A ring of one stage, head and tail in one. */
export const withHead = (use: (head: TestStage) => void, options: Partial<EngineOptions> = {}): void => {
  withEngine(options, (engine) => {
    const [head] = testStages([engine]);
    assert(head !== undefined, 'there is one stage');
    use(head);
  });
};
