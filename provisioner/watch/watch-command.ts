/** `watch`: a loaded ring in the terminal, live: what it gives, where a token's time goes, whether it slows down. */
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';

import type { Command } from 'commander';

import { P4Error } from '../../protocol/errors.ts';
import { present } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import { modeOf, runCommand, userPath, type CommandContext } from '../command.ts';
import { FleetConnection } from '../fleet-connection.ts';
import { notReadyExit } from '../fleet-status.ts';
import { commandWays } from '../fleet-ways.ts';
import { unlessAborted } from '../interrupt.ts';
import { wholeNumber } from '../number-option.ts';
import { openPlan, type OpenedPlan } from '../opened-plan.ts';
import { chosenState, stateOptionText } from '../state-option.ts';
import type { StateFolder } from '../state-folder.ts';
import type { Terminal } from '../terminal.ts';
import { LiveWatch } from './live-watch.ts';
import { ringPicture } from './ring-picture.ts';
import { styleOf } from './terminal-style.ts';
import { watchJson } from './watch-json.ts';
import { beginWatch, takeLook, viewOf, type WatchState } from './watch-state.ts';
import { WatchedRing } from './watched-ring.ts';

interface WatchOptions {
  readonly interval: string;
  readonly once?: boolean;
  readonly state?: string;
  readonly json?: boolean;
}

interface Watch {
  readonly opened: OpenedPlan;
  readonly state: StateFolder;
  readonly intervalSeconds: number;
  readonly isOnce: boolean;
}

export function addWatchCommand(program: Command): void {
  program
    .command('watch')
    .description('shows a ring live: stages, links, tokens per second, journals, and whether it slows down')
    .argument('<plan>', 'the plan file of the ring')
    .option('--interval <seconds>', 'between two looks; what rates are taken over with --once', '2')
    .option('--once', 'print one picture; exit status 3 when something is not ready')
    .option('--state <folder>', stateOptionText)
    .option('--json', 'print JSON lines, one a look: one alone with --once')
    .action((plan: string, options: WatchOptions) =>
      runCommand(modeOf(options), async (context) => {
        const intervalSeconds = wholeNumber('--interval', options.interval, [1, limits.watchIntervalSeconds]);
        const isOnce = options.once === true;
        if (!isOnce && context.terminal.mode === 'text') requireTerminal();
        const opened = await openPlan(userPath(plan));
        return watch({ opened, state: chosenState(options.state), intervalSeconds, isOnce }, context);
      }),
    );
}

/** @throws TERMINAL_NEEDED */
function requireTerminal(): void {
  if (!process.stdout.isTTY) throw new P4Error('TERMINAL_NEEDED');
}

async function watch(order: Watch, context: CommandContext): Promise<number> {
  const { opened, state, intervalSeconds } = order;
  const { terminal } = context;
  // Ends what is asked when the user leaves.
  const over = new AbortController();
  const signal = AbortSignal.any([context.signal, over.signal]);
  const fleet = await FleetConnection.open(state, await commandWays(state, { terminal, signal }));
  try {
    const ring = new WatchedRing({ opened, state, fleet, signal });
    const { plan } = opened;
    if (order.isOnce) return await watchOnce(ring, order, { terminal, signal });
    if (terminal.mode === 'json') return await watchLines(ring, order, { terminal, signal });
    await LiveWatch.run({
      ...{ plan, intervalSeconds, signal },
      look: (withinMs) => ring.look(withinMs),
      output: process.stdout,
      input: process.stdin.isTTY ? process.stdin : null,
      ...styleOf(process.env, process.stdout),
    });
    return 0;
  } finally {
    over.abort(new P4Error('CANCELLED', { by: 'the end of the watch' }));
    await fleet.close();
  }
}

/** Two looks, since one has no rates. */
async function watchOnce(ring: WatchedRing, order: Watch, { terminal, signal }: CommandContext): Promise<number> {
  const first = takeLook(beginWatch(order.opened.plan), await ring.look(limits.answerMs));
  await unlessAborted(pause(order.intervalSeconds * 1000), signal);
  const state = takeLook(first, await ring.look(limits.answerMs));
  const view = present(viewOf(state), 'there was a look');
  const { style } = styleOf(process.env, process.stdout);
  const width = process.stdout.isTTY && process.stdout.columns > 0 ? process.stdout.columns : 80;
  terminal.line(ringPicture(view, { style, width, height: null }, null).join('\n'));
  terminal.event(watchJson(view));
  return view.isReady ? 0 : notReadyExit;
}

/** Until it is interrupted. */
async function watchLines(ring: WatchedRing, order: Watch, { terminal, signal }: CommandContext): Promise<never> {
  let state = takeLook(beginWatch(order.opened.plan), await ring.look(limits.answerMs));
  for (;;) {
    tellLatest(state, terminal);
    await unlessAborted(pause(order.intervalSeconds * 1000), signal);
    state = takeLook(state, await ring.look(limits.watchAnswerMs));
  }
}

const tellLatest = (state: WatchState, terminal: Terminal): void => {
  terminal.event(watchJson(present(viewOf(state), 'there was a look')));
};
