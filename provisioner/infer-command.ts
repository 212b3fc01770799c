/** `infer`: gives a prompt to a loaded ring and streams the answer. */
import process from 'node:process';

import type { Command } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import { present } from '../protocol/assert.ts';
import type { OpenedPlan } from './opened-plan.ts';
import { AnswerPrinter, requireFinished, workLines } from './answer-printer.ts';
import { modeOf, runCommand, userPath, type CommandContext } from './command.ts';
import { FleetConnection } from './fleet-connection.ts';
import { commandWays } from './fleet-ways.ts';
import { knownGeneration } from './generation-file.ts';
import { standsWithOtherPlan } from './loader-step.ts';
import { openPlan } from './opened-plan.ts';
import { readPrompt } from './prompt-option.ts';
import { RingCalls } from './ring-calls.ts';
import { runRequest, type RequestOrder } from './ring-request.ts';
import { addSamplingOptions, readSamplingOptions, type OptionValues } from './sampling-options.ts';
import { chosenState, stateOptionText } from './state-option.ts';
import type { StateFolder } from './state-folder.ts';

interface InferOptions extends OptionValues {
  readonly tokens?: string;
  /** False with `--no-special`. */
  readonly special: boolean;
  readonly stats?: boolean;
  readonly state?: string;
  readonly json?: boolean;
}

export function addInferCommand(program: Command): void {
  const command = program
    .command('infer')
    .description('gives a prompt to a loaded ring and streams the answer')
    .argument('<plan>', 'the plan file the ring was loaded with')
    .argument('[prompt]', 'the prompt; without one it is read from standard input')
    .option('--tokens <ids>', 'the prompt as token ids, as in 1,5,9')
    .option('--no-special', 'take text like <|user|> as it stands, not as a control token');
  addSamplingOptions(command)
    .option('--stats', 'tell on standard error what each stage ran, and how fast')
    .option('--state <folder>', stateOptionText)
    .option('--json', 'print JSON lines')
    .action((plan: string, prompt: string | undefined, options: InferOptions) =>
      runCommand(modeOf(options), async (context) => {
        const opened = await openPlan(userPath(plan));
        const order = await requestOf(prompt, options, context.signal);
        return infer({ opened, order, state: chosenState(options.state), withStats: options.stats === true }, context);
      }),
    );
}

async function requestOf(
  argument: string | undefined,
  options: InferOptions,
  signal: AbortSignal,
): Promise<RequestOrder> {
  const choice = await readSamplingOptions(options);
  const prompt = await readPrompt({ argument, tokens: options.tokens, input: process.stdin, signal });
  return { ...choice, prompt, parseSpecial: options.special };
}

interface Inference {
  readonly opened: OpenedPlan;
  readonly order: RequestOrder;
  readonly state: StateFolder;
  readonly withStats: boolean;
}

async function infer(inference: Inference, { terminal, signal }: CommandContext): Promise<number> {
  const { opened, order, state, withStats } = inference;
  const { ring } = opened.plan;
  const kept = await knownGeneration(state, ring);
  if (standsWithOtherPlan(kept, opened.digest)) throw new P4Error('RING_LOADED', { ring });
  const fleet = await FleetConnection.open(state, await commandWays(state, { terminal, signal }));
  try {
    const head = present(kept.plan.stages[0], 'a plan has a head');
    const calls = new RingCalls(fleet.client(head.host), ring, kept.generation);
    const printer = new AnswerPrinter(terminal, { seed: order.sampling.seed, maxTokens: order.maxTokens });
    const onNews = printer.news.bind(printer);
    const result = await runRequest({ ring: calls, order, signal, onNews });
    printer.end(result);
    printer.settlement(result);
    if (withStats) terminal.note(workLines(result).join('\n'));
    requireFinished(result);
    return 0;
  } finally {
    await fleet.close();
  }
}
