/**
 * The second oracle's process: the uncut model in node-llama-cpp, by its public interface alone. It reads an order as JSON
 * from standard input and writes what the model makes of it to standard output; nothing of p4 runs in it.
 */
import { text } from 'node:stream/consumers';

import { getLlama, LlamaLogLevel, type ControlledEvaluateInputItem, type Token } from 'node-llama-cpp';

import { assert, present } from '../../protocol/assert.ts';
import { isPublicApiOrder, type PublicApiStep } from './public-api.ts';

const order: unknown = JSON.parse(await text(process.stdin));
assert(isPublicApiOrder(order), 'the order has its form');

const llama = await getLlama({ gpu: false, build: 'never', progressLogs: false, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath: order.path, gpuLayers: 0 });
const context = await model.createContext({
  contextSize: order.contextTokens,
  flashAttention: order.flashAttention,
  threads: 1,
});
const sequence = context.getSequence();

const asked = { generateNext: { token: true, probabilities: true } } as const;
// Token ids are plain numbers that the package has given a brand.
const inputs = (tokens: readonly number[]): ControlledEvaluateInputItem[] =>
  tokens.map((token, index) => (index === tokens.length - 1 ? [token as Token, asked] : (token as Token)));

const steps: PublicApiStep[] = [];
for (const rows of order.rows) {
  const outputs = await sequence.controlledEvaluate(inputs(rows));
  const { token, probabilities } = present(outputs.at(-1)?.next, 'the last row has an output');
  const values: number[] = [];
  for (const [id, probability] of present(probabilities, 'probabilities were asked for')) values[id] = probability;
  steps.push({ token: present(token ?? null, 'a token was asked for'), probabilities: values });
}
await llama.dispose();
process.stdout.write(JSON.stringify(steps));
