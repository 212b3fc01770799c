/**
 * How a command runs: it gets a terminal and an interrupt, and whatever it throws becomes text and an exit status.
 *
 * Exit status: 0 done; 2 to 5 as `protocol/errors.ts` says; 70 a bug; 128 and the signal's number when interrupted.
 */
import { isAbsolute, resolve } from 'node:path';
import process from 'node:process';
import { setImmediate as nextTurn } from 'node:timers/promises';

import type { Command } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import { Interrupt, interruptedExit } from './interrupt.ts';
import { ownerText } from './lock-owner.ts';
import { stateLocks } from './state-lock.ts';
import { Terminal } from './terminal.ts';

export interface CommandContext {
  readonly terminal: Terminal;
  /** Aborted when the user, the system or a closed output ends the command early. */
  readonly signal: AbortSignal;
}

/** What a command does; its number is the exit status. */
export type CommandBody = (context: CommandContext) => Promise<number>;

export type CommandRegistration = (program: Command) => void;

const bugExit = 70;

/** Runs a command to its end and sets the exit status. */
export async function runCommand(mode: Terminal['mode'], body: CommandBody): Promise<void> {
  const interrupt = Interrupt.listen();
  const terminal = new Terminal(mode, { out: process.stdout, err: process.stderr });
  stateLocks.on('takeover', ({ lock, from }) => {
    terminal.note(`Took over ${lock}: ${ownerText(from)}, has ended without letting go.`);
    terminal.event({ event: 'lock-taken-over', lock, from: ownerText(from) });
  });
  const exit = await exitOf(body, { terminal, interrupt });
  terminal.endProgress();
  // What is still open then (a channel that has not noticed its peer's end) must not keep a finished command.
  process.exit(exit);
}

async function exitOf(body: CommandBody, { terminal, interrupt }: CommandEnds): Promise<number> {
  try {
    const exit = await body({ terminal, signal: interrupt.signal });
    // A stream tells of its last line only in a later turn.
    await nextTurn();
    return interrupt.failure === null ? exit : reportFailure(terminal, interrupt.failure);
  } catch (error) {
    // What a command makes of the loss of its output is no news beside the loss; a bug is.
    if (interrupt.failure !== null && error instanceof P4Error) return reportFailure(terminal, interrupt.failure);
    // A command that Ctrl-C is the proper end of returns; one that was cut short by it throws.
    const { by } = interrupt;
    if (by === null || by === 'failed output' || !(error instanceof P4Error) || error.code !== 'CANCELLED')
      return reportFailure(terminal, error);
    if (terminal.mode === 'json') terminal.failure(error, interruptedExit(by));
    // A reader that has seen enough (`| head`) need not be told.
    else if (by !== 'closed output') terminal.note('Interrupted.');
    return interruptedExit(by);
  }
}

interface CommandEnds {
  readonly terminal: Terminal;
  readonly interrupt: Interrupt;
}

/** Prints an error and returns its exit status. */
export function reportFailure(terminal: Terminal, error: unknown): number {
  if (error instanceof P4Error) {
    terminal.failure(error);
    return error.rule.exit;
  }
  process.stderr.write(
    `This is a bug in p4:\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
  return bugExit;
}

export const modeOf = (options: { readonly json?: boolean }): Terminal['mode'] =>
  options.json === true ? 'json' : 'text';

/** The checkout or installation this command belongs to. */
export const packageFolder = resolve(import.meta.dirname, '../..');

/**
 * A path as the user meant it: relative to the folder they typed it in, which npm hands over when it changes into the
 * package's own.
 */
export function userPath(path: string): string {
  if (isAbsolute(path)) return path;
  const typedIn = process.cwd() === packageFolder ? process.env['INIT_CWD'] : undefined;
  return resolve(typedIn ?? process.cwd(), path);
}
