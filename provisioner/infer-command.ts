/** `infer`: gives a prompt to a loaded ring and streams the answer, or that of an earlier request. */
import process from 'node:process';

import type { Command } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import { present } from '../protocol/assert.ts';
import { limits } from '../protocol/limits.ts';
import type { OpenedPlan } from './opened-plan.ts';
import { AnswerPrinter, requireFinished, workLines } from './answer-printer.ts';
import { modeOf, runCommand, userPath, type CommandContext } from './command.ts';
import { FleetConnection } from './fleet-connection.ts';
import { commandWays } from './fleet-ways.ts';
import { knownGeneration } from './generation-file.ts';
import { standsWithOtherPlan } from './loader-step.ts';
import { wholeNumber } from './number-option.ts';
import { openPlan, ringHosts } from './opened-plan.ts';
import { readPrompt } from './prompt-option.ts';
import { isLeftBehind, ReadingPlace, type ReadingCommand } from './reading-place.ts';
import { requestNumber } from './request-option.ts';
import { RingCalls } from './ring-calls.ts';
import { resumeRequest, runRequest, type RequestNews, type RequestOrder, type RequestResult } from './ring-request.ts';
import { addSamplingOptions, readSamplingOptions, type OptionValues } from './sampling-options.ts';
import { SilenceWatch } from './silence-watch.ts';
import { stageWorkLines } from './stage-work.ts';
import { chosenState, stateOptionText } from './state-option.ts';
import type { StateFolder } from './state-folder.ts';

interface InferOptions extends OptionValues {
  readonly tokens?: string;
  /** False with `--no-special`. */
  readonly special: boolean;
  /** False with `--no-reuse`. */
  readonly reuse: boolean;
  readonly request?: string;
  readonly from?: string;
  readonly stats?: boolean;
  readonly state?: string;
  readonly json?: boolean;
}

export function addInferCommand(program: Command): void {
  const command = program
    .command('infer')
    .description('gives a prompt to a loaded ring and streams the answer; or reads that of an earlier request')
    .argument('<plan>', 'the plan file the ring was loaded with')
    .argument('[prompt]', 'the prompt; without one it is read from standard input')
    .option('--tokens <ids>', 'the prompt as token ids, as in 1,5,9')
    .option('--no-special', 'take text like <|user|> as it stands, not as a control token')
    .option('--no-reuse', 'run the whole prompt, whatever earlier ones have left of it')
    .option('--request <id>', 'read the answer of this request instead, to its end')
    .option('--from <index>', 'with --request: index of the first token to read (default: 0)');
  addSamplingOptions(command)
    .option('--stats', 'tell on standard error what each stage ran, and how fast')
    .option('--state <folder>', stateOptionText)
    .option('--json', 'print JSON lines')
    .action((plan: string, prompt: string | undefined, options: InferOptions) =>
      runCommand(modeOf(options), async (context) => {
        const opened = await openPlan(userPath(plan));
        const wanted = await wantedOf(prompt, options, context.signal);
        const typed = { planFile: plan, state: options.state };
        const state = chosenState(options.state);
        return infer({ opened, typed, wanted, state, withStats: options.stats === true }, context);
      }),
    );
}

type Wanted =
  | { readonly kind: 'new'; readonly order: RequestOrder; readonly cacheKey: string }
  | { readonly kind: 'earlier'; readonly request: number; readonly from: number };

/** All commands of one operator share what prompts begin with: they have one certificate, and one person's prompts. */
const inferKey = 'infer';

/** Options that mean something for an earlier request. */
const readingOptions: ReadonlySet<string> = new Set(['special', 'reuse', 'request', 'from', 'stats', 'state', 'json']);

async function wantedOf(argument: string | undefined, options: InferOptions, signal: AbortSignal): Promise<Wanted> {
  if (options.request === undefined) {
    if (options.from !== undefined) throw contradiction('--from without --request', '--request ID --from INDEX');
    const choice = await readSamplingOptions(options);
    const prompt = await readPrompt({ argument, tokens: options.tokens, input: process.stdin, signal });
    const order = { ...choice, prompt, parseSpecial: options.special };
    return { kind: 'new', order, cacheKey: options.reuse ? inferKey : '' };
  }
  const other = Object.keys(options).find((name) => !readingOptions.has(name) && options[name] !== undefined);
  if (argument !== undefined || other !== undefined || !options.special || !options.reuse) {
    throw contradiction('--request and a prompt, or options for one', '--request ID alone, with --from INDEX');
  }
  const from = options.from === undefined ? 0 : wholeNumber('--from', options.from, [0, limits.contextTokens]);
  return { kind: 'earlier', request: requestNumber(options.request), from };
}

const contradiction = (found: string, expected: string): P4Error =>
  new P4Error('COMMAND_LINE_INVALID', { found, expected });

interface Inference {
  readonly opened: OpenedPlan;
  readonly typed: ReadingCommand;
  readonly wanted: Wanted;
  readonly state: StateFolder;
  readonly withStats: boolean;
}

async function infer(inference: Inference, context: CommandContext): Promise<number> {
  const { opened, typed, wanted, state, withStats } = inference;
  const { terminal, signal } = context;
  const { ring } = opened.plan;
  const kept = await knownGeneration(state, ring);
  if (standsWithOtherPlan(kept, opened.digest)) throw new P4Error('RING_LOADED', { ring });
  const fleet = await FleetConnection.open(state, await commandWays(state, { terminal, signal }));
  try {
    const head = present(kept.plan.stages[0], 'a plan has a head');
    const calls = new RingCalls(fleet.client(head.host), ring, kept.generation);
    const asked = wanted.kind === 'new' ? wanted.order : null;
    const printer = new AnswerPrinter(terminal, {
      seed: asked?.sampling.seed ?? null,
      maxTokens: asked?.maxTokens ?? null,
    });
    const deadlineMs = kept.plan.deadlineSeconds * 1000;
    const place = new ReadingPlace(typed, wanted.kind === 'earlier' ? wanted : null);
    const watch = new SilenceWatch({
      ...{ fleet, ring, hosts: ringHosts(kept.plan), signal },
      tell: (part) => {
        printer.silent(part);
      },
    });
    const result = await read({ wanted, calls, printer, place, watch, deadlineMs }, context).finally(() => {
      watch.stop();
    });
    printer.end(result);
    if (wanted.kind === 'earlier') printer.beyond(wanted.from, result.end.completionTokens);
    printer.settlement(result);
    if (!result.isSettled) terminal.note(`Its receipts are still on their way: \`${place.settling}\` shows them.`);
    if (withStats) terminal.note((asked === null ? stageWorkLines(result.stages) : workLines(result)).join('\n'));
    requireFinished(result);
    return 0;
  } finally {
    await fleet.close();
  }
}

interface ReadParts {
  readonly wanted: Wanted;
  readonly calls: RingCalls;
  readonly printer: AnswerPrinter;
  readonly place: ReadingPlace;
  readonly watch: SilenceWatch;
  readonly deadlineMs: number;
}

/** Who is cut off from a request that goes on is told how to come back to it. */
async function read(
  { wanted, calls, printer, place, watch, deadlineMs }: ReadParts,
  context: CommandContext,
): Promise<RequestResult> {
  const { terminal, signal } = context;
  const onNews = (news: RequestNews): void => {
    watch.heard();
    place.hear(news);
    printer.news(news);
  };
  const run = { ring: calls, signal, deadlineMs, onNews };
  try {
    if (wanted.kind === 'new') return await runRequest({ ...run, order: wanted.order, cacheKey: wanted.cacheKey });
    return await resumeRequest({ ...run, request: wanted.request, from: wanted.from });
  } catch (error) {
    const { way } = place;
    if (way !== null && isLeftBehind(error, wanted.kind)) {
      terminal.note(`${way.command} goes on from here`);
      terminal.event({ event: 'broken-off', ...way });
    }
    throw error;
  }
}
