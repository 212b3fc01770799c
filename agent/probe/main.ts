/**
 * Measures the network between a fleet's hosts, as deploy on the operator's machine tells it.
 *
 *     node agent/probe/main.js
 *
 * Orders come over standard input, answers go to standard output, a line of JSON each (protocol/probe-messages.ts). Ends
 * when standard input closes, or after `limits.probeLifeMs`. Needs no rights and leaves nothing behind.
 */
import { createInterface } from 'node:readline';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { parseProbeOrder, probeLine } from '../../protocol/probe-codec.ts';
import type { ProbeAnswer, ProbeBegin } from '../../protocol/probe-messages.ts';
import { readAddresses, readMachineId } from './address-source.ts';
import { listenAt } from './listener.ts';
import { measureBurst, measureReach } from './measurement.ts';

const say = (answer: ProbeAnswer): void => {
  process.stdout.write(probeLine(answer));
};

function refuse(why: string): never {
  say({ kind: 'failed', why: why.slice(0, 300) });
  throw new P4Error('PROBE_PROTOCOL', { found: why });
}

async function main(): Promise<void> {
  const lines = boundedLines();
  const first = await lines.next();
  if (first.done === true) return;
  const begin = parseProbeOrder(first.value);
  if (begin.kind !== 'begin') return refuse(`${begin.kind} before begin`);
  await answerBegin(begin);
  let underWay = 0;
  for await (const line of lines) {
    const order = parseProbeOrder(line);
    if (order.kind === 'begin') return refuse('begin a second time');
    underWay += 1;
    if (underWay > limits.probeOrders) return refuse(`more than ${limits.probeOrders} orders at once`);
    const { id, target } = order;
    const answer = async (): Promise<void> => {
      if (order.kind === 'reach') say({ kind: 'reached', id, outcome: await measureReach(target, begin.secret) });
      else say({ kind: 'measured', id, outcome: await measureBurst(target, begin.secret) });
      underWay -= 1;
    };
    void answer();
  }
}

async function answerBegin({ host, secret, port }: ProbeBegin): Promise<void> {
  const machineId = await readMachineId();
  const found = (await readAddresses()).slice(0, 2 * limits.probeAddresses);
  const addresses = await listenAt(found, { identity: { host, machineId }, secret, port });
  say({ kind: 'began', machineId, addresses });
}

async function* boundedLines(): AsyncGenerator<string, void, undefined> {
  // A line without end would fill the memory before readline gives it out.
  let bytes = 0;
  process.stdin.on('data', (chunk: Buffer) => {
    bytes = chunk.includes(0x0a) ? 0 : bytes + chunk.length;
    if (bytes > limits.probeLineBytes) process.exit(4);
  });
  yield* createInterface({ input: process.stdin });
}

process.stdout.on('error', () => undefined);
setTimeout(() => {
  process.stderr.write('nobody said anything more for too long\n');
  process.exit(4);
}, limits.probeLifeMs).unref();
try {
  await main();
  process.exit(0);
} catch (error) {
  if (!(error instanceof P4Error)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(error.rule.exit);
}
