/**
 * One agent as a child of this command: for local use, the demo and tests (A4).
 *
 * The child has a process group of its own, so that Ctrl-C reaches this command alone, which then ends its agents in
 * order; and its standard input is a lifeline: however this command ends, the pipe closes and the agent ends itself.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

import type { AgentReady } from '../protocol/agent-config.ts';
import { isErrorCode, P4Error, type ErrorFacts } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { ownerFileMode } from './durable-file.ts';
import { unlessAborted } from './interrupt.ts';

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** How an agent's process ended. */
export interface AgentEnd {
  readonly host: HostName;
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last whole lines of its standard error that are not of its log; empty when there are none. */
  readonly said: readonly string[];
  /** Path of its log. */
  readonly log: string;
}

/** Beside the agent's configuration; begun anew with each start. */
const agentLogName = 'agent.log';
const agentMain = join(import.meta.dirname, '../agent/main.js');

export class AgentProcess {
  readonly host: HostName;
  /** Resolves once, when the process is gone. */
  readonly ended: Promise<AgentEnd>;
  readonly #child: Child;

  private constructor(host: HostName, child: Child, log: string) {
    this.host = host;
    this.#child = child;
    this.ended = endOf(child).then((how) => ({ ...how, host, log }));
  }

  /** Starts the process; it may not answer yet. */
  static spawn(host: HostName, configPath: string): AgentProcess {
    const child = spawn(process.execPath, ['--enable-source-maps', agentMain, '--config', configPath], {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      cwd: '/',
    });
    // The agent may be gone when its lifeline closes.
    child.stdin.on('error', () => undefined);
    const logPath = join(dirname(configPath), agentLogName);
    const log = createWriteStream(logPath, { mode: ownerFileMode });
    // A full disk costs the log, not the agent.
    log.on('error', () => undefined);
    child.stderr.pipe(log);
    return new AgentProcess(host, child, logPath);
  }

  /**
   * Waits until the agent answers on its addresses.
   * @throws the agent's own error when it says why it does not start; else AGENT_NOT_STARTED; CANCELLED
   */
  async ready(signal: AbortSignal): Promise<AgentReady> {
    const deadline = AbortSignal.timeout(limits.agentStartMs);
    const ended = this.ended.then((end): never => {
      throw notStarted(end);
    });
    const late = new Promise<never>((_resolve, reject) => {
      deadline.addEventListener('abort', () => {
        reject(new P4Error('AGENT_NOT_STARTED', { host: this.host, waitedMs: limits.agentStartMs }));
      });
    });
    return unlessAborted(Promise.race([this.#firstLine(), ended, late]), signal);
  }

  /** Ends the process and waits for it; kills it when it does not end in time. Its stages end with it. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    this.#child.stdin.end();
    // Its stages notice by their own lifelines.
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), limits.agentStopMs);
    await this.ended;
    clearTimeout(kill);
  }

  /** Its first line on standard output: that it is ready, or why it is not. What follows is drained. */
  async #firstLine(): Promise<AgentReady> {
    const lines = createInterface({ input: this.#child.stdout });
    const line = await new Promise<string>((resolve) => lines.once('line', resolve));
    return parseReady(this.host, line);
  }
}

/** Parses the line of `AgentReady`, or the agent's own failure. */
function parseReady(host: HostName, line: string): AgentReady {
  const value = parseJson(line);
  if (isRecord(value) && value['event'] === 'failed') throw failureOf(host, value);
  if (!isRecord(value) || value['event'] !== 'ready') {
    throw new P4Error('AGENT_NOT_STARTED', { host, said: line.slice(0, 200), expected: 'a line that says ready' });
  }
  // The line comes from the same release, over a pipe that only this command reads.
  return value as unknown as AgentReady;
}

function failureOf(host: HostName, value: Readonly<Record<string, unknown>>): P4Error {
  const { code, facts } = value;
  if (typeof code !== 'string' || !isErrorCode(code)) return new P4Error('AGENT_NOT_STARTED', { host });
  return new P4Error(code, { agent: host, ...(isRecord(facts) ? (facts as ErrorFacts) : {}) });
}

const notStarted = (end: AgentEnd): P4Error => new P4Error('AGENT_NOT_STARTED', factsOf(end));

/** The error of an agent that ended although nobody told it to. */
export const agentLost = (end: AgentEnd): P4Error => new P4Error('AGENT_LOST', factsOf(end));

const factsOf = ({ host, status, signal, said, log }: AgentEnd): ErrorFacts => ({
  ...{ host, exit: signal ?? status ?? 'unknown' },
  ...(said.length === 0 ? {} : { said: [...said] }),
  log,
});

function endOf(child: Child): Promise<Omit<AgentEnd, 'host' | 'log'>> {
  let said = '';
  let isCut = false;
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    isCut ||= said.length > limits.agentSaidBytes;
    said = said.slice(-limits.agentSaidBytes);
  });
  return new Promise((resolve) => {
    child.once('error', (cause) => {
      resolve({ status: null, signal: null, said: [cause.message] });
    });
    // `close`, not `exit`: by then everything it said has been read.
    child.once('close', (status, signal) => {
      resolve({ status, signal, said: lastLines(said, isCut) });
    });
  });
}

/**
 * What an agent said beside its log, whose lines are in its file.
 * @param isCut whether the text begins within a line, whose rest is no line
 */
export const lastLines = (said: string, isCut: boolean): readonly string[] =>
  said
    .split('\n')
    .slice(isCut ? 1 : 0)
    .filter((line) => line !== '' && !line.startsWith('{'))
    .slice(-12);

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
