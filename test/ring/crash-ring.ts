/**
 * For crash tests: a ring of two stages over two agents, stories that it tells while an agent's journal fails, and what
 * has to be true when it is back: the same words, each told once, and the same rows as without any loss.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { hostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { defaultSampling, type Sampling } from '../../protocol/sampling.ts';
import { runRequest, type RequestNews, type RequestResult } from '../../provisioner/ring-request.ts';
import { eventually } from '../fixture/eventually.ts';
import { LocalAgents, type AgentEnd, type RingPlan, type TestAgent } from '../fixture/local-agents.ts';
import { agreedRows, type LoadedRing } from '../fixture/loaded-ring.ts';
import { crashHosts, type CrashHost } from './crash-cases.ts';

const deadlineSeconds = 120;

export const planOf = (ring: string): RingPlan => ({
  ring,
  decode: 'exact',
  deadline: deadlineSeconds,
  // Those whose opening was durable and never told stay until nobody can come back to them any more.
  sessions: 32,
  stages: [
    [crashHosts[0], '0-3'],
    [crashHosts[1], '4-7'],
  ],
});

export interface Story {
  readonly prompt: string;
  readonly maxTokens: number;
  readonly sampling: Partial<Sampling>;
}

const greedy = { prompt: 'Once upon a time', sampling: { temperature: 0 } };
const seeded = { prompt: 'The little dog', sampling: { temperature: 0.8, seed: 7 } };
/** A reader is told that its request waits, or is refused, with one of these; nothing else may come of a journal's failure. */
export const refusals: ReadonlySet<string> = new Set([
  ...['AGENT_UNREACHABLE', 'AGENT_STOPPING', 'RPC_FAILED', 'RPC_TIMED_OUT', 'CANCELLED', 'AGENT_RESTARTED'],
  ...['RING_EMPTY', 'RING_NOT_READY', 'JOURNAL_WRITE_FAILED', 'STAGE_LOST', 'LINK_LOST', 'NOT_THE_HEAD'],
]);

/** A story that is being told. */
export interface Telling {
  readonly story: Story;
  readonly tokens: number[];
  readonly news: RequestNews[];
  readonly ended: Promise<RequestResult | P4Error>;
}

export class CrashRing {
  readonly agents: LocalAgents;
  #ring: LoadedRing | null = null;
  /** Refused ones: of each a session may be open, which nobody knows, until its lease has had its time. */
  #untold = 0;
  /** What undisturbed stories came to, by their prompt: longer than any other story. */
  readonly #twins = new Map<string, { readonly tokens: readonly number[]; readonly text: string }>();

  private constructor(agents: LocalAgents) {
    this.agents = agents;
  }

  /** @param longest tokens of the longest story */
  static async start(longest: number): Promise<CrashRing> {
    const self = new CrashRing(await LocalAgents.start(crashHosts.length));
    try {
      await self.load();
      for (const story of [greedy, seeded]) {
        const telling = self.tell({ ...story, maxTokens: longest });
        const result = await told(telling);
        self.#twins.set(story.prompt, { tokens: telling.tokens, text: textOf(telling, result) });
      }
      return self;
    } catch (error) {
      await self.agents.home.remove();
      throw error;
    }
  }

  get ring(): LoadedRing {
    return present(this.#ring, 'the ring was loaded');
  }

  agent(host: CrashHost): TestAgent {
    return this.agents.agent(host);
  }

  /** Loads this ring, or tells its load again. */
  async load(): Promise<void> {
    this.#ring = await this.loaded('crash');
  }

  /** Loads a ring. Connections of this process to an agent that has started again may be back a moment later. */
  async loaded(name: string): Promise<LoadedRing> {
    let found: LoadedRing | null = null;
    const isLoaded = async (): Promise<boolean> => {
      try {
        found = await this.agents.load(planOf(name));
        return true;
      } catch (error) {
        const isConnection = error instanceof P4Error && error.code === 'AGENT_UNREACHABLE';
        if (isConnection && crashHosts.every((host) => this.agent(host).isRunning)) return false;
        throw error;
      }
    };
    await eventually(isLoaded, { what: `${name} is loaded` });
    return present<LoadedRing>(found, 'it was loaded');
  }

  tell(story: Story): Telling {
    const { ring } = this;
    const tokens: number[] = [];
    const news: RequestNews[] = [];
    const onNews = (each: RequestNews): void => {
      news.push(each);
      if (each.kind !== 'token') return;
      assert.equal(each.token.index, tokens.length, 'tokens are told in order, each once');
      tokens.push(each.token.token);
    };
    const ended = runRequest({
      ring: ring.calls,
      order: {
        prompt: { kind: 'text', text: story.prompt },
        ...{ parseSpecial: true, sampling: { ...defaultSampling, ...story.sampling }, maxTokens: story.maxTokens },
        ...{ stopStrings: [], ignoreEnd: true },
      },
      ...{ signal: ring.signal, onNews, deadlineMs: deadlineSeconds * 1000 },
    }).catch((error: unknown) => {
      if (error instanceof P4Error) return error;
      throw error;
    });
    return { story, tokens, news, ended };
  }

  /** A greedy story and a seeded one, of which some has been told. */
  async stories(maxTokens: number): Promise<readonly Telling[]> {
    if (await this.mend()) await this.load();
    const tellings = [this.tell({ ...greedy, maxTokens }), this.tell({ ...seeded, maxTokens: maxTokens / 2 })];
    await eventually(() => tellings.every(({ tokens }) => tokens.length > 4), {
      what: 'the stories have begun',
      withinMs: 30_000,
    });
    return tellings;
  }

  /** Starts what a test before left dead: that is no failure of this one. @returns whether there was any */
  async mend(): Promise<boolean> {
    const dead = crashHosts.filter((host) => !this.agent(host).isRunning);
    for (const host of dead) await this.agent(host).start();
    return dead.length > 0;
  }

  newcomer(): Telling {
    return this.tell({ ...greedy, maxTokens: 12 });
  }

  /** J2, J8, S2, S3, R3: each is its undisturbed twin, in words and rows, however often its settlement is asked for. */
  async toldAsEver(tellings: readonly Telling[]): Promise<void> {
    for (const telling of tellings) {
      const result = await told(telling);
      const { tokens: twin, text } = present(this.#twins.get(telling.story.prompt), 'the story has a twin');
      assert.deepEqual(telling.tokens, twin.slice(0, telling.story.maxTokens));
      assert.ok(text.startsWith(textOf(telling, result)), textOf(telling, result));
      const submitted = telling.news.find((each) => each.kind === 'submitted');
      const { session, request, promptTokens } = present(submitted, 'its admission was told');
      const settlement = await this.ring.calls.settle(session, request, this.ring.signal);
      const { maxTokens } = telling.story;
      assert.deepEqual(agreedRows(settlement), { prefilled: promptTokens, decoded: maxTokens - 1, reused: 0 });
      assert.equal(settlement.emitted, maxTokens);
      assert.deepEqual(await this.ring.calls.settle(session, request, this.ring.signal), settlement);
    }
  }

  /** One that was asked for while an agent died: told as ever, or refused clearly before its admission was told. */
  async toldOrRefused(telling: Telling): Promise<void> {
    const result = await telling.ended;
    if (!(result instanceof P4Error)) {
      await this.toldAsEver([telling]);
      return;
    }
    assert.ok(refusals.has(result.code), result.message);
    assert.deepEqual(telling.news, [], 'nothing of it was told');
    this.#untold += 1;
  }

  /** Has its head write: sessions are opened and closed, of which each is a commit or more, until something comes of it. */
  async writeMuch(isOver: () => boolean): Promise<void> {
    const { calls, signal } = this.ring;
    while (!isOver()) {
      try {
        await (await calls.openSession(signal, { answerMs: limits.answerMs })).letGo();
      } catch (error) {
        if (!(error instanceof P4Error) || !refusals.has(error.code)) throw error;
        this.#untold += 1;
        return;
      }
    }
  }

  /** Another ring over the same agents tells what this one does. */
  async tellsAsEver(other: LoadedRing): Promise<void> {
    const { tokens } = await other.askAlone({ ...greedy, maxTokens: 12, ignoreEnd: true });
    assert.deepEqual(tokens, this.#twins.get(greedy.prompt)?.tokens.slice(0, 12));
  }

  /** The ring is ready again, and holds nothing of what was asked of it. */
  async untilWhole(): Promise<void> {
    const areWhole = async (): Promise<boolean> => {
      const whole = await Promise.all(crashHosts.map((host) => this.isWhole(host)));
      return whole.every(Boolean);
    };
    await eventually(areWhole, { what: 'the ring is ready on every host', withinMs: 30_000 });
    const isIdle = async (): Promise<boolean> => {
      const { sessionsOpen, requestsRunning } = await this.ring.headStatus();
      return requestsRunning === 0 && sessionsOpen <= this.#untold;
    };
    // One that was opened again after its opening was cut off has left another behind.
    await eventually(isIdle, {
      what: 'nothing runs, and no session is open but those of which nobody was told',
      withinMs: limits.orphanLeaseMs + 10_000,
    });
    if (this.#untold === 0) await this.ring.untilEmpty();
  }

  /** Whether the ring stands on this host. Its head says when a token has been round. */
  async isWhole(host: CrashHost): Promise<boolean> {
    const { phase } = await this.ring.status(hostName(host));
    return phase === (host === crashHosts[0] ? 'ready' : 'linked');
  }

  /** Takes a ring down; nothing is left of it on any host. */
  async unload(ring: string): Promise<void> {
    const { exit, err } = await this.agents.home.run(['unload', this.agents.writePlan(planOf(ring))]);
    assert.equal(exit, 0, err);
    await this.nothingLeft(ring);
  }

  async nothingLeft(ring: string): Promise<void> {
    for (const host of crashHosts) assert.deepEqual((await this.agents.status(host, ring)).rings, [], host);
  }

  /** Whether an agent's journal is written. */
  async hasJournal(host: CrashHost): Promise<boolean> {
    const { journal } = await this.agents.status(host);
    return journal?.state === 'open';
  }

  /** What the generation file of a ring says; `null` where there is none. */
  kept(ring: string): { readonly generation: string; readonly phase: string } | null {
    const file = join(this.agents.state.generations, `${ring}.json`);
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { generation: string; phase: string }) : null;
  }

  /** Every agent ends in order and its journal is found whole; no process and no file is left. */
  async stop(): Promise<void> {
    try {
      for (const host of crashHosts) {
        await this.agent(host).stop();
        await checkJournal(this.agent(host));
      }
    } finally {
      await this.agents.stop();
    }
  }
}

async function told({ ended }: Telling): Promise<RequestResult> {
  const result = await ended;
  if (result instanceof P4Error) throw result;
  assert.equal(result.end.reason, 'length');
  return result;
}

const textOf = ({ news }: Telling, { end }: RequestResult): string =>
  [...news.map((each) => (each.kind === 'token' ? each.token.text : '')), end.text].join('');

/** `p4 journal check` of an agent that does not run. */
export async function checkJournal(agent: TestAgent): Promise<void> {
  const program = join(import.meta.dirname, '../../agent/host/main.js');
  const config = join(agent.config.stateFolder, 'agent.json');
  await writeFile(config, JSON.stringify(agent.config), { mode: 0o600 });
  const child = spawn(process.execPath, [program, 'journal', 'check', '--config', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  await once(child, 'close');
  assert.equal(child.exitCode, 0, err);
}

/** Stages of this agent are lost again and again, which it writes down, until something has come of it. */
export async function loseStages(ring: CrashRing, host: CrashHost, isOver: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + 90_000;
  while (!isOver()) {
    assert.ok(performance.now() < endsAtMs, 'something comes of losses');
    try {
      const { nodes } = await ring.ring.status(hostName(host));
      for (const { pid } of nodes) if (pid > 0) killIfThere(pid);
      const isBack = async (): Promise<boolean> => isOver() || (await ring.isWhole(host));
      await eventually(isBack, { what: 'the stage is back', withinMs: 30_000 });
    } catch (error) {
      if (!(error instanceof P4Error)) throw error;
    }
  }
}

/** Its agent may have ended it, and with itself. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/** That an agent was killed at this point, as it says itself. */
export function assertKilledAt(point: string, agent: TestAgent, end: AgentEnd): void {
  assert.deepEqual([end.status, end.signal], [null, 'SIGKILL'], agent.log.slice(-2000));
  assert.match(saidArmed(agent), new RegExp(`^journal: kill at ${point}, passing`, 'm'));
}

/** What an agent has said since its journal was armed last. */
export const saidArmed = ({ log }: TestAgent): string => log.slice(log.lastIndexOf('a failpoint is armed'));

/** Errors that its journal has met at a point meanwhile. */
export const errorsMet = (agent: TestAgent, point: string): readonly string[] =>
  [...saidArmed(agent).matchAll(new RegExp(`^journal: (EIO|ENOSPC) at ${point}, passing`, 'gm'))].map(
    ([, error = '']) => error,
  );

const mayPass = new Set(['JOURNAL_WRITE_FAILED', 'JOURNAL_FULL', 'AGENT_UNREACHABLE', 'STAGE_LOST', 'LINK_LOST']);

/** Does it again as long as a journal that cannot be written or is full, or the connection, keeps it from being done. */
export async function inTheEnd(work: () => Promise<void>): Promise<void> {
  const isDone = async (): Promise<boolean> => {
    try {
      await work();
      return true;
    } catch (error) {
      if (error instanceof P4Error && mayPass.has(error.code)) return false;
      throw error;
    }
  };
  await eventually(isDone, { what: 'it is done', withinMs: 60_000 });
}
