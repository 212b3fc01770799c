/**
 * The second oracle's process: the uncut model in node-llama-cpp, by its public interface alone. It reads an order as JSON
 * from standard input and writes what the model makes of it to standard output; nothing of p4 runs in it.
 */
import { text } from 'node:stream/consumers';

import { getLlama, LlamaLogLevel, type ControlledEvaluateInputItem, type Token } from 'node-llama-cpp';

import { assert, present } from '../../protocol/assert.ts';
import { isPublicApiOrder, type PublicApiOrder, type PublicApiStep } from './public-api.ts';

const order: unknown = JSON.parse(await text(process.stdin));
assert(isPublicApiOrder(order), 'the order has its form');

const llama = await getLlama({ gpu: false, build: 'never', progressLogs: false, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath: order.path, gpuLayers: 0 });
const asked = { generateNext: { token: true, probabilities: true } } as const;
// Token ids are plain numbers that the package has given a brand.
const inputs = (tokens: readonly number[]): ControlledEvaluateInputItem[] =>
  tokens.map((token, index) => (index === tokens.length - 1 ? [token as Token, asked] : (token as Token)));

async function run(
  rows: PublicApiOrder['rows'],
  flashAttention: boolean,
  contextSize: number,
): Promise<PublicApiStep[]> {
  const context = await model.createContext({ contextSize, flashAttention, threads: 1 });
  const sequence = context.getSequence();
  const steps: PublicApiStep[] = [];
  for (const tokens of rows) {
    const outputs = await sequence.controlledEvaluate(inputs(tokens));
    const { token, probabilities } = present(outputs.at(-1)?.next, 'the last row has an output');
    const values: number[] = [];
    for (const [id, probability] of present(probabilities, 'probabilities were asked for')) values[id] = probability;
    steps.push({ token: present(token ?? null, 'a token was asked for'), probabilities: values });
  }
  await context.dispose();
  return steps;
}

const runs: PublicApiStep[][] = [];
for (const flashAttention of order.flashAttention)
  runs.push(await run(order.rows, flashAttention, order.contextTokens));
await llama.dispose();
process.stdout.write(JSON.stringify(runs));
