/**
 * An agent: one per host.
 *
 *     node agent/main.js --config <file>
 *
 * Prints one line of JSON on standard output once it answers (`AgentReady`), and tells systemd so where that started it; its
 * log goes to standard error. SIGTERM and SIGINT end it, and with it the stages that are its children.
 */
import { parseArgs } from 'node:util';
import type { AgentFailed, AgentReady } from '../protocol/agent-config.ts';
import { P4Error } from '../protocol/errors.ts';
import { readAgentConfig, readTlsIdentity } from './agent-config-file.ts';
import { startAgent } from './agent.ts';
import { logTo } from './log.ts';
import { openNotifier } from './systemd-notify.ts';

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { config: { type: 'string' } } });
  if (values.config === undefined) {
    throw new P4Error('INVALID_ARGUMENT', { what: '--config', found: 'nothing', expected: 'a file' });
  }
  const config = await readAgentConfig(values.config);
  const { host } = config;
  const log = logTo(host);
  const ending = endWanted(config.endsWithInput);
  const notifier = openNotifier(process.env, log);
  const agent = await startAgent({ config, tls: await readTlsIdentity(config), log });
  const ready: AgentReady = { event: 'ready', host, pid: process.pid, listen: agent.listen, metrics: agent.metrics };
  process.stdout.write(`${JSON.stringify(ready)}\n`);
  notifier.ready(agent.summary);
  log({ event: 'agent-ending', by: await ending });
  notifier.stopping();
  await agent.stop();
  log({ event: 'agent-ended' });
}

/** Resolves with the reason when the agent is to end. */
function endWanted(endsWithInput: boolean): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        resolve(signal);
      });
    }
    if (!endsWithInput) return;
    process.stdin.once('close', () => {
      resolve('standard input closed');
    });
    process.stdin.on('error', () => undefined);
    process.stdin.resume();
  });
}

try {
  await main();
  process.exit(0);
} catch (error) {
  if (!(error instanceof P4Error)) throw error;
  const failed: AgentFailed = { event: 'failed', code: error.code, facts: error.facts };
  process.stdout.write(`${JSON.stringify(failed)}\n`);
  process.stderr.write(`${error.message}\n`);
  process.exit(error.rule.exit);
}
