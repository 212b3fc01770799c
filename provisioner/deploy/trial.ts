/**
 * Tries a release before anything is switched: its agent runs beside the former one, with a state of its own and on
 * another port, and has to answer the operator over mutual TLS where the operator reaches the host.
 *
 * It needs nothing but the user, its certificate and the release; it has no rings, and goes when it has answered.
 */
import type { AgentConfig } from '../../protocol/agent-config.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { NetAddress } from '../../protocol/net-address.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import { shellWords } from '../ssh/shell-quoting.ts';
import { withAgent } from './agent-access.ts';
import { agentConfigText } from './desired.ts';
import type { Deployment } from './deploy-order.ts';
import { unitWords } from './former-state.ts';
import { hostLayout, releaseFolder } from '../host-layout.ts';
import type { HostRun } from './host-run.ts';

export interface TrialOrder {
  readonly host: HostRun;
  readonly releaseId: string;
  /** The advertised address on the host; its port is not used. */
  readonly address: string;
  /** Where the operator reaches that host. */
  readonly operatorAddress: string;
  readonly agent: TlsIdentity;
  readonly operator: TlsIdentity;
}

/** @throws TRIAL_FAILED with what the agent said last, and those of ssh */
export async function tryRelease({ report, signal }: Deployment, order: TrialOrder): Promise<void> {
  const { host } = order;
  const { name, session } = host;
  try {
    report.at(name, 'trying the new release');
    const port = await startTrial(order, signal);
    const at = { address: order.operatorAddress, port };
    const outcome = await answerOf(order, at, signal);
    if (outcome !== null && outcome.code !== 'AGENT_UNREACHABLE') throw await failed(host, [outcome.message]);
    // A firewall that lets only the agent's own port through is no fault of the release.
    if (outcome !== null)
      report.host(name, `the trial runs, but port ${port} is closed from here; the switch will tell`);
  } finally {
    report.at(name, null);
    await session.run({ script: endScript, timeoutMs: limits.answerMs }).catch(() => undefined);
  }
}

const { trial, trialUnit } = hostLayout;

/** A release's agent that is told to listen on any port says which it got. */
async function startTrial(order: TrialOrder, signal: AbortSignal): Promise<number> {
  const { host, releaseId, agent } = order;
  // The operator's address first: its port is the one that is told.
  const addresses = new Set([order.operatorAddress, order.address]);
  const config: AgentConfig = {
    host: host.name,
    listen: [...addresses].map((address) => ({ address, port: 0 })),
    stateFolder: `${trial}/state`,
    slicesFolder: `${trial}/state`,
    runtimeFolder: `${trial}/run`,
    pki: { authority: `${trial}/authority.crt`, certificate: `${trial}/agent.crt`, key: `${trial}/agent.key` },
    journalLimitBytes: limits.journalLeastBytes,
    endsWithInput: false,
    stages: 'child-processes',
  };
  const files = [agentConfigText(config), agent.authority, agent.certificate, agent.key];
  const input = Buffer.from(files.map((text) => `${Buffer.from(text).toString('base64')}\n`).join(''));
  const { status, stdout, stderr } = await host.session.run({ script: startScript(releaseId), input, signal });
  const line = stdout.toString('utf8').trim();
  const port = status === 0 ? portIn(line) : null;
  if (port === null) throw await failed(host, [...(line === '' ? [] : [line]), ...stderr.split('\n')]);
  return port;
}

const startScript = (releaseId: string): string => `set -eu
umask 077
systemctl stop ${trialUnit} 2>/dev/null || true
rm -rf ${trial}
mkdir -p ${trial}/state ${trial}/run
for name in agent.json authority.crt agent.crt agent.key; do
  IFS= read -r content
  printf '%s' "$content" | base64 -d >${trial}/$name
done
chown -R ${hostLayout.user}:${hostLayout.group} ${trial}
systemd-run --quiet --collect --unit=${trialUnit} --uid=${hostLayout.user} --gid=${hostLayout.group} \\
  -p RuntimeMaxSec=120 -p LimitCORE=0 -p WorkingDirectory=/ -p StandardOutput=file:${trial}/said -p StandardError=journal \\
  ${shellWords(`${releaseFolder(releaseId)}/runtime/bin/node`, '--enable-source-maps', `${releaseFolder(releaseId)}/dist/agent/main.js`)} \\
  --config ${trial}/agent.json
tries=0
until grep -q '^{"event":' ${trial}/said 2>/dev/null; do
  tries=$((tries + 1))
  systemctl is-active --quiet ${trialUnit} || [ "$tries" -lt 10 ] || exit 1
  [ "$tries" -lt ${Math.round(limits.agentStartMs / 200)} ] || exit 1
  sleep 0.2
done
grep -m 1 '^{"event":' ${trial}/said
`;

const endScript = `systemctl stop ${trialUnit} 2>/dev/null; systemctl reset-failed ${trialUnit} 2>/dev/null; rm -rf ${trial}`;

/** The port in an agent's line that it is ready; `null` for any other line. */
export function portIn(line: string): number | null {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null || !('event' in value) || value.event !== 'ready') return null;
    const first: unknown = 'listen' in value && Array.isArray(value.listen) ? value.listen[0] : null;
    const port = typeof first === 'object' && first !== null && 'port' in first ? first.port : null;
    return typeof port === 'number' ? port : null;
  } catch {
    return null;
  }
}

/** `null` when the agent answered as the host that it is. */
async function answerOf({ host, operator }: TrialOrder, at: NetAddress, signal: AbortSignal): Promise<P4Error | null> {
  try {
    await withAgent({ host, at, operator }, (client) =>
      client.call(['Agent', 'Describe'], {}, { deadlineMs: limits.answerMs, signal }),
    );
    return null;
  } catch (error) {
    if (!(error instanceof P4Error) || isNoAnswer(error)) throw error;
    return error;
  }
}

/** What says nothing of the release. */
const isNoAnswer = ({ code }: P4Error): boolean =>
  code === 'CANCELLED' || code === 'SSH_FORWARDING_REFUSED' || code === 'HOST_LOST';

async function failed(host: HostRun, words: readonly string[]): Promise<P4Error> {
  const journal = await unitWords(host.session, trialUnit);
  const said = [...words, ...journal].filter((line) => line.trim() !== '').slice(-limits.saidLines);
  return new P4Error('TRIAL_FAILED', { host: host.name, said });
}
