/**
 * A client of OUTER: opens a session, asks, reads along, loses its connection, takes its session up again, cancels, closes.
 * What it has read never changes and never has a gap (J8), whatever becomes of the fleet.
 */
import type { CallReply } from '../../agent/calls.ts';
import {
  generation,
  requestId,
  type LoadId,
  type RequestId,
  type SessionId,
  type TokenId,
} from '../../protocol/ids.ts';
import type { AgentModel } from './agent-model.ts';
import type { ClientScript, Reading } from './client-script.ts';
import type { GatherNews } from './services-model.ts';
import { Violation } from './violation.ts';
import type { RingModel } from './ring-model.ts';
import type { World } from './world.ts';

type Doing = 'opening' | 'submitting' | 'gathering' | 'settling' | 'closing' | 'done';

export class ClientModel {
  readonly #world: World;
  readonly #ring: RingModel;
  readonly #script: ClientScript;
  readonly readings: Reading[] = [];
  doing: Doing = 'opening';
  #load: LoadId | null = null;
  #session: SessionId | null = null;
  #reading: Reading | null = null;
  #next = 0;
  /** Whether its session has had a request. */
  #hasAsked = false;
  /** What was said in its sessions so far. */
  #told: TokenId[] = [];
  /** Counts its connections, so that news of a former one is told apart. */
  #connection = 0;
  #leave: () => void = () => undefined;

  constructor(world: World, ring: RingModel, script: ClientScript) {
    this.#world = world;
    this.#ring = ring;
    this.#script = script;
    this.#later(script.startMs, () => {
      this.#open();
    });
  }

  get isDone(): boolean {
    return this.doing === 'done';
  }

  get text(): string {
    return `${this.#ring.ring} session ${this.#session ?? '-'} request ${this.#reading?.request ?? '-'} ${this.doing}`;
  }

  #later(ms: number, run: () => void): void {
    this.#world.clock.after(ms, () => {
      this.#world.guarded(run);
    });
  }

  #soon(run: () => void): void {
    this.#later(this.#world.random.between(100, 1500), run);
  }

  get #agent(): AgentModel | null {
    return this.#world.machine(this.#ring.headHost).agent;
  }

  #ask(
    make: Parameters<AgentModel['ask']>[0],
    answered: (reply: CallReply | 'gone', agent: AgentModel | null) => void,
  ): void {
    const agent = this.#agent;
    if (agent === null) {
      this.#later(20, () => {
        answered('gone', null);
      });
    } else {
      agent.ask(make, (reply) => {
        answered(reply, agent);
      });
    }
  }

  get #at() {
    const kept = this.#ring.current;
    const wrong = this.#world.random.oneIn(25);
    const number = kept?.generation ?? 1n;
    return { ring: this.#ring.ring, generation: generation((wrong ? number + 2n : number).toString()) };
  }

  #open(): void {
    const kept = this.#ring.current;
    if (kept === null) {
      if (this.#ring.isOver) this.#done();
      else
        this.#soon(() => {
          this.#open();
        });
      return;
    }
    this.#letGo();
    this.doing = 'opening';
    this.#session = null;
    this.#hasAsked = false;
    this.#load = kept.loadId;
    const at = this.#at;
    const { owner } = this.#script;
    this.#ask(
      (call) => ({ kind: 'open-session', call, ...at, owner, waits: this.#world.random.oneIn(2) }),
      (reply, agent) => {
        if (reply === 'gone' || agent === null || reply.kind !== 'session-opened') {
          this.#soon(() => {
            this.#open();
          });
        } else if (this.#world.random.oneIn(20)) {
          // The answer was lost on its way.
          agent.hear(() => {
            agent.services.letGo(kept.loadId, reply.session);
          });
          this.#soon(() => {
            this.#open();
          });
        } else {
          this.#letGo();
          this.#session = reply.session;
          this.#hold(agent, kept.loadId, reply.session);
          this.#submit();
        }
      },
    );
  }

  /** The lease is this connection; a session that has ended meanwhile shows at the next call. */
  #hold(agent: AgentModel, load: LoadId, session: SessionId): void {
    const connection = ++this.#connection;
    this.#leave();
    this.#leave = agent.services.onEnd(() => {
      this.#later(this.#world.random.between(1, 50), () => {
        if (connection === this.#connection) this.#broken();
      });
    });
    if (agent.isGone) {
      this.#later(1, () => {
        if (connection === this.#connection) this.#broken();
      });
      return;
    }
    agent.services.hold(load, session, () => undefined);
  }

  /** Its connection is gone: it takes its session up again, later. */
  #broken(): void {
    this.#connection++;
    this.#leave();
    this.#leave = () => undefined;
    if (this.doing === 'done') return;
    if (this.#script.abandons && this.#world.random.oneIn(2)) {
      this.#done();
      return;
    }
    this.#soon(() => {
      this.#resume();
    });
  }

  #disconnect(): void {
    const { random, plan } = this.#world;
    this.#letGo();
    this.#connection++;
    this.#leave();
    if (this.#script.abandons) this.#done();
    else
      this.#later(random.oneIn(8) ? plan.lingerMs + 500 : random.between(10, 1500), () => {
        this.#resume();
      });
  }

  #resume(): void {
    const [load, session] = [this.#load, this.#session];
    if (this.doing === 'done') return;
    if (load === null || session === null) {
      this.#open();
      return;
    }
    if (this.#isLoadOver(load)) {
      this.#sessionIsGone();
      return;
    }
    const at = this.#at;
    this.#ask(
      (call) => ({ kind: 'resume-session', call, ...at, session }),
      (reply, agent) => {
        if (reply !== 'gone' && reply.kind === 'session-opened' && agent !== null) {
          this.#hold(agent, load, session);
          if (this.#reading !== null && this.#reading.end === null) this.#gather(this.#reading);
          else if (this.doing === 'closing') this.#close();
          else this.#submit();
        } else if (isRefused(reply, 'SESSION_UNKNOWN')) this.#sessionIsGone();
        else
          this.#soon(() => {
            this.#resume();
          });
      },
    );
  }

  /** What the request came to can be read all the same; the rest is asked in a new session. */
  #sessionIsGone(): void {
    this.#letGo();
    this.#session = null;
    if (this.#next >= this.#script.prompts.length || this.#ring.isOver) this.#done();
    else this.#open();
  }

  #isLoadOver(load: LoadId): boolean {
    const { journal } = this.#world.machine(this.#ring.headHost);
    return journal.loads.get(load)?.isEnded === true || this.#ring.current?.loadId !== load;
  }

  #submit(): void {
    const { prompts, renews } = this.#script;
    const written = prompts[this.#next];
    const [load, session] = [this.#load, this.#session];
    this.#reading = null;
    if (written === undefined || (renews !== 'never' && this.#hasAsked)) {
      this.#close();
      return;
    }
    const submission = renews === 'with-history' ? { ...written, prompt: [...this.#told, ...written.prompt] } : written;
    if (load === null || session === null) return;
    this.doing = 'submitting';
    const at = this.#at;
    const connection = this.#connection;
    this.#ask(
      (call) => ({ kind: 'submit', call, ...at, session, ...submission }),
      (reply) => {
        if (connection !== this.#connection) return;
        if (reply !== 'gone' && reply.kind === 'submitted') {
          this.#hasAsked = true;
          this.#told = [...submission.prompt];
          this.#begin(load, reply.request);
        } else if (reply !== 'gone' && reply.kind === 'refused') this.#refused(load, reply.error);
      },
    );
  }

  #refused(load: LoadId, { code, facts }: Extract<CallReply, { kind: 'refused' }>['error']): void {
    if (code === 'SESSION_BUSY') this.#begin(load, requestId(Number(facts['request'])));
    else if (code === 'PROMPT_TOO_LONG' || code === 'PROMPT_EMPTY') {
      this.#next++;
      this.#submit();
    } else if (code === 'SESSION_UNKNOWN' || this.#isLoadOver(load)) this.#sessionIsGone();
    else
      this.#soon(() => {
        if (this.doing === 'submitting') this.#submit();
      });
  }

  #begin(load: LoadId, request: RequestId): void {
    this.#next++;
    const former = this.readings.find((reading) => reading.load === load && reading.request === request);
    const reading: Reading = former ?? { load, request, tokens: [], end: null };
    if (former === undefined) this.readings.push(reading);
    if (this.#world.random.oneIn(this.#script.renews === 'never' ? 10 : 5)) this.#cancel(reading);
    this.#gather(reading);
  }

  #gather(reading: Reading): void {
    this.#reading = reading;
    this.doing = 'gathering';
    const agent = this.#agent;
    const connection = this.#connection;
    const isMine = (): boolean => connection === this.#connection && this.#reading === reading;
    const again = (): void => {
      if (this.#isLoadOver(reading.load)) this.#sessionIsGone();
      else
        this.#soon(() => {
          if (isMine()) this.#gather(reading);
        });
    };
    this.#later(1, () => {
      if (!isMine()) return;
      if (agent === null || agent.isGone) {
        again();
        return;
      }
      agent.hear(() => {
        const found = agent.services.read(reading, reading.tokens.length, (news) => {
          this.#later(0.5, () => {
            if (isMine()) this.#read(reading, news);
          });
        });
        if (!found) again();
      });
    });
  }

  #read(reading: Reading, news: GatherNews): void {
    switch (news.kind) {
      case 'token':
        if (news.index !== reading.tokens.length) {
          throw new Violation('J8', `token ${news.index} is read where ${reading.tokens.length} is next`);
        }
        reading.tokens.push(news.token);
        this.#told.push(news.token);
        this.#whim();
        return;
      case 'end':
        reading.end = news.reason;
        this.#settle(reading);
        return;
      case 'paused':
      case 'resumed':
    }
  }

  #whim(): void {
    const { random } = this.#world;
    const { disconnectOneIn, cancelOneIn } = this.#script;
    const reading = this.#reading;
    if (disconnectOneIn > 0 && random.oneIn(disconnectOneIn)) this.#disconnect();
    else if (cancelOneIn > 0 && random.oneIn(cancelOneIn) && reading !== null) this.#cancel(reading);
  }

  #cancel({ request }: Reading): void {
    const session = this.#session;
    if (session === null) return;
    const at = this.#at;
    this.#ask(
      (call) => ({ kind: 'cancel', call, ...at, session, request }),
      () => undefined,
    );
  }

  #settle(reading: Reading): void {
    const session = this.#session;
    if (session === null || this.#world.random.oneIn(3)) {
      this.#submit();
      return;
    }
    this.doing = 'settling';
    const at = this.#at;
    const connection = this.#connection;
    this.#ask(
      (call) => ({ kind: 'settle', call, ...at, session, request: reading.request }),
      (reply) => {
        if (reply !== 'gone' && reply.kind === 'settlement' && reply.settlement.kind === 'running') {
          throw new Violation('S3', `request ${reading.request} runs after its end was read`);
        }
        if (connection === this.#connection) this.#submit();
      },
    );
  }

  #close(tries = 3): void {
    const session = this.#session;
    this.doing = 'closing';
    if (session === null) {
      this.#done();
      return;
    }
    const at = this.#at;
    this.#ask(
      (call) => ({ kind: 'close-session', call, ...at, session }),
      (reply) => {
        const isClosed = reply !== 'gone' && reply.kind === 'session-closed';
        const goesOn = this.doing === 'closing' && this.#next < this.#script.prompts.length;
        if (isClosed && goesOn) this.#open();
        else if (isClosed || this.doing !== 'closing' || tries === 0) this.#done();
        else
          this.#soon(() => {
            if (this.doing === 'closing') this.#close(tries - 1);
          });
      },
    );
  }

  /** Its connection is the lease of its session. */
  #letGo(): void {
    const [agent, load, session] = [this.#agent, this.#load, this.#session];
    if (agent === null || load === null || session === null) return;
    agent.hear(() => {
      agent.services.letGo(load, session);
    });
  }

  #done(): void {
    this.#letGo();
    this.doing = 'done';
    this.#connection++;
    this.#leave();
  }
}

const isRefused = (reply: CallReply | 'gone', code: string): boolean =>
  reply !== 'gone' && reply.kind === 'refused' && reply.error.code === code;
