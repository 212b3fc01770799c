/** `settle`: what each stage ran for a request (S2); the same answer however often it is asked (S3). */
import type { Command } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import { present } from '../protocol/assert.ts';
import { limits } from '../protocol/limits.ts';
import type { Settlement } from '../protocol/messages.ts';
import { modeOf, runCommand, userPath, type CommandContext } from './command.ts';
import { FleetConnection } from './fleet-connection.ts';
import { commandWays } from './fleet-ways.ts';
import { knownGeneration } from './generation-file.ts';
import { openPlan } from './opened-plan.ts';
import { requestNumber } from './request-option.ts';
import { RingCalls } from './ring-calls.ts';
import { receiptLines, usageOf } from './settlement-text.ts';
import { chosenState, stateOptionText } from './state-option.ts';
import type { Plan } from '../protocol/plan.ts';
import type { StateFolder } from './state-folder.ts';

interface SettleOptions {
  readonly request: string;
  readonly state?: string;
  readonly json?: boolean;
}

/** Exit status when the receipts are not there yet. */
const notSettledExit = 3;

export function addSettleCommand(program: Command): void {
  program
    .command('settle')
    .description('shows what each stage ran for a request that has ended; exit status 3 when it has not')
    .argument('<plan>', 'the plan file the ring was loaded with')
    .requiredOption('--request <id>', 'the request, by the number that `infer` told')
    .option('--state <folder>', stateOptionText)
    .option('--json', 'print JSON lines')
    .action((plan: string, options: SettleOptions) =>
      runCommand(modeOf(options), async (context) => {
        const request = requestNumber(options.request);
        const opened = await openPlan(userPath(plan));
        return settle({ plan: opened.plan, request, state: chosenState(options.state) }, context);
      }),
    );
}

interface SettleOrder {
  readonly plan: Plan;
  readonly request: number;
  readonly state: StateFolder;
}

async function settle({ plan, request, state }: SettleOrder, { terminal, signal }: CommandContext): Promise<number> {
  // The load's own plan, not the file's: that may have been edited since.
  const kept = await knownGeneration(state, plan.ring);
  const fleet = await FleetConnection.open(state, await commandWays(state, { terminal, signal }));
  try {
    const head = present(kept.plan.stages[0], 'a plan has a head');
    const calls = new RingCalls(fleet.client(head.host), plan.ring, kept.generation);
    const settlement = await calls.settleWithin({ session: 0, request }, limits.answerMs, signal);
    terminal.line(settlementText(request, settlement));
    terminal.event({ event: 'settlement', request, ...eventOf(settlement) });
    return settlement.state === 'settled' ? 0 : notSettledExit;
  } finally {
    await fleet.close();
  }
}

function settlementText(request: number, settlement: Settlement): string {
  const { state, reason, emitted, stages } = settlement;
  switch (state) {
    case 'running':
      return `Request ${request} is running: its receipts come when it has ended.`;
    case 'ending':
      return `Request ${request} has ended, but its receipts are still on their way: ask again when the ring is ready.`;
    case 'settled':
      return [`Request ${request} ended (${reason}) after ${emitted} tokens.`, ...receiptLines(stages)].join('\n');
    default:
      throw new P4Error('RPC_FAILED', { method: 'Outer.Settle', found: state, expected: 'running, ending or settled' });
  }
}

const eventOf = ({ state, reason, emitted, stages }: Settlement): Readonly<Record<string, unknown>> =>
  state === 'settled' ? { state, reason, usage: usageOf({ emitted, stages }), stages } : { state };
