/**
 * Tells systemd how the agent fares (`Type=notify`): ready, stopping, a line of status, and that its event loop turns.
 *
 * Node has no datagram sockets of the Unix kind, so the words go through `sd_notify` of libsystemd, or where that is missing
 * through the program `systemd-notify`, which a unit must allow with `NotifyAccess=all`.
 */
import { execFile } from 'node:child_process';
import koffi from 'koffi';

import { limits } from '../protocol/limits.ts';
import type { Log } from './log.ts';

const libraryName = 'libsystemd.so.0';
const programName = 'systemd-notify';

type Environment = Readonly<Record<string, string | undefined>>;

/** Sends words of `sd_notify(3)`, `NAME=value`, several a message. */
type Speak = (...words: readonly string[]) => void;

export interface ServiceNotifier {
  /** From here on the status is told whenever it has changed, and the watchdog hears of the event loop. */
  ready(status: () => string): void;
  stopping(): void;
}

/** Says nothing where no service manager listens. */
export function openNotifier(environment: Environment, log: Log): ServiceNotifier {
  const socket = environment['NOTIFY_SOCKET'];
  if (socket === undefined || socket === '') return { ready: () => undefined, stopping: () => undefined };
  const { speak, through } = speaker();
  const watchdogMs = watchdogPeriodMs(environment, process.pid);
  log({ event: 'service-manager', through, watchdogMs });
  let timer: NodeJS.Timeout | null = null;
  return {
    ready: (status) => {
      let told = status();
      speak('READY=1', statusWord(told));
      timer = setInterval(() => {
        const now = status();
        const words = [...(watchdogMs === null ? [] : ['WATCHDOG=1']), ...(now === told ? [] : [statusWord(now)])];
        if (words.length > 0) speak(...words);
        told = now;
      }, notifyPeriodMs(watchdogMs)).unref();
    },
    stopping: () => {
      if (timer !== null) clearInterval(timer);
      speak('STOPPING=1');
    },
  };
}

/** A status is one line. */
const statusWord = (status: string): string => `STATUS=${status.replaceAll(/\s+/g, ' ')}`;

/** How long the service manager waits for a word, `null` where it does not wait for one of this process. */
export function watchdogPeriodMs(environment: Environment, pid: number): number | null {
  const { WATCHDOG_USEC: period = '', WATCHDOG_PID: watched = String(pid) } = environment;
  if (!/^[1-9][0-9]{0,15}$/.test(period) || watched !== String(pid)) return null;
  return Number(period) / 1000;
}

/** Twice a watchdog's period, and often enough for a status that people look at. */
export const notifyPeriodMs = (watchdogMs: number | null): number =>
  Math.max(1, Math.min(limits.serviceStatusMs, watchdogMs === null ? Infinity : watchdogMs / 2));

function speaker(): { readonly speak: Speak; readonly through: string } {
  try {
    const notify: (unset: number, state: string) => number = koffi
      .load(libraryName)
      .func('int sd_notify(int unset_environment, const char *state)');
    return { speak: (...words) => void notify(0, words.join('\n')), through: libraryName };
  } catch {
    return { speak: speakThroughProgram, through: programName };
  }
}

/** A word that is lost is said again, or its loss is noticed: by the watchdog, or by the deadline of the start. */
const speakThroughProgram: Speak = (...words) => {
  execFile(programName, words, { timeout: limits.serviceStatusMs }, () => undefined);
};
