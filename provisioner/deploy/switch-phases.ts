/**
 * The phases `files`, `services` and `verify`: hosts are switched, and go back together where one does not prove itself.
 *
 * A signal does not end them half-way: each step has a deadline of its own, and what they leave is one release or the
 * other on every host.
 */
import { setTimeout as pause } from 'node:timers/promises';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import type { FleetHost } from '../fleet-file.ts';
import type { Addresses } from './addresses-phase.ts';
import { agentAddressOf, withAgent } from './agent-access.ts';
import { forgetFormer, keepFormer, makeAllChanges, putBack } from './change-phases.ts';
import { isReady, type Deployment } from './deploy-order.ts';
import { onHosts } from './fork.ts';
import { unitWords } from './former-state.ts';
import { hostLayout } from '../host-layout.ts';
import type { HostRun } from './host-run.ts';
import type { PhaseName } from './phase.ts';
import { beginPhase, tellFailures } from './telling.ts';

export interface SwitchOrder {
  readonly addresses: Addresses;
  readonly operator: TlsIdentity;
}

/** Hosts that fail are told at the host; those that were switched are then as they were before. */
export async function switchHosts(deployment: Deployment, order: SwitchOrder): Promise<void> {
  const { report, signal } = deployment;
  const tell = (): void => {
    report.note('Interrupted: what has begun is finished on every host, or taken back.');
  };
  signal.addEventListener('abort', tell, { once: true });
  try {
    await switchAll(deployment, order);
  } finally {
    signal.removeEventListener('abort', tell);
  }
}

async function switchAll(deployment: Deployment, order: SwitchOrder): Promise<void> {
  const { hosts, report, order: asked } = deployment;
  const { phases, forks } = asked;
  const isAsked = (phase: PhaseName): boolean => phases.has(phase);
  if (isAsked('files')) {
    beginPhase(deployment, 'files');
    await onHosts({ phase: 'files', hosts, forks }, keepFormer);
    if (isReady(deployment)) await makeAllChanges(deployment, 'files');
    if (!isReady(deployment)) return goBack(deployment, 'files');
  }
  if (isAsked('services')) {
    beginPhase(deployment, 'services');
    for (const host of hosts) host.isSwitched = host.changesIn('services').length > 0;
    await makeAllChanges(deployment, 'services');
    await explainUnits(deployment);
    if (!isReady(deployment)) return goBack(deployment, 'services');
  }
  if (isAsked('verify')) {
    beginPhase(deployment, 'verify');
    await onHosts({ phase: 'verify', hosts, forks }, (host) => proveAnswer(deployment, host, order));
    if (!isReady(deployment)) return goBack(deployment, 'verify');
    for (const host of hosts) host.end = 'answers';
  }
  const phase = report.current ?? 'verify';
  await onHosts({ phase, hosts: hosts.filter(({ changes }) => changes.length > 0), forks }, forgetFormer);
}

/** systemd says only that a unit did not start: the agent's own words are in its journal. */
async function explainUnits({ hosts }: Deployment): Promise<void> {
  for (const host of hosts.filter(({ failure }) => failure?.phase === 'services')) {
    const error = host.failure?.error;
    if (error?.code !== 'HOST_SCRIPT_FAILED') continue;
    const said = await unitWords(host.session, hostLayout.agentUnit);
    host.explain(new P4Error('AGENT_NOT_ANSWERING', { host: host.name, said: said.slice(-limits.saidLines) }, error));
  }
}

/** All hosts have one release: where one host does not take the new one, none keeps it. */
async function goBack(deployment: Deployment, phase: PhaseName): Promise<void> {
  const { hosts, report } = deployment;
  tellFailures(deployment);
  await Promise.all(
    hosts
      .filter((host) => host.isConnected && host.changes.some(({ phase: of }) => of !== 'monitoring'))
      .map(async (host) => {
        try {
          await putBack(host);
          host.end = 'back';
          report.host(host.name, 'went back to what it had');
          report.event({ event: 'went-back', host: host.name });
        } catch (error) {
          if (!(error instanceof P4Error)) throw error;
          // It failed before, or fails now: the operator is told which state it was left in by its next deployment.
          host.fail(phase, error);
          host.end = 'between';
          report.host(host.name, `could not go back: ${error.message}`);
        }
      }),
  );
}

/**
 * A fresh connection each time: the former agent's would prove nothing.
 * @throws AGENT_NOT_ANSWERING, AGENT_NOT_REACHED
 */
async function proveAnswer({ report }: Deployment, host: HostRun, order: SwitchOrder): Promise<void> {
  const entry = order.addresses.get(host.name);
  if (entry === undefined) return;
  report.at(host.name, 'waiting for its agent');
  const deadline = performance.now() + limits.releaseProofMs;
  try {
    for (;;) {
      const error = await answerOf(host, entry, order.operator);
      if (error === null) return;
      if (performance.now() >= deadline) {
        if (error.code === 'AGENT_UNREACHABLE' && (await isAgentUp(host))) throw notReached(host, entry, error);
        const said = await unitWords(host.session, hostLayout.agentUnit);
        throw new P4Error(
          'AGENT_NOT_ANSWERING',
          { host: host.name, address: entry.address, why: error.message, said: said.slice(-limits.saidLines) },
          error,
        );
      }
      await pause(retryMs);
    }
  } finally {
    report.at(host.name, null);
  }
}

const retryMs = 250;

/** Whether systemd has heard from the agent that it is ready: then it listens. */
async function isAgentUp({ session }: HostRun): Promise<boolean> {
  const { status } = await session.run({
    script: `systemctl is-active --quiet ${hostLayout.agentUnit}`,
    timeoutMs: limits.answerMs,
  });
  return status === 0;
}

/** What is between this machine and the host is no fault of the release. */
function notReached({ name }: HostRun, { address, port, network }: FleetHost, error: P4Error): P4Error {
  const open = [...new Set([address, ...(network?.listen ?? [])])];
  return new P4Error('AGENT_NOT_REACHED', { host: name, openOneOf: open, port, why: error.facts['why'] ?? '' }, error);
}

/** `null` when the host's own agent answered, on this very machine. */
async function answerOf(host: HostRun, entry: FleetHost, operator: TlsIdentity): Promise<P4Error | null> {
  const address = agentAddressOf(host, entry);
  try {
    const { machineId } = await withAgent({ host, at: { address, port: entry.port }, operator }, (client) =>
      client.call(['Agent', 'Describe'], {}, { deadlineMs: limits.answerMs }),
    );
    if (machineId === host.facts.machineId) return null;
    return new P4Error('LINK_WRONG_PEER', { host: host.name, address, machineId, expected: host.facts.machineId });
  } catch (error) {
    if (!(error instanceof P4Error) || error.code === 'SSH_FORWARDING_REFUSED') throw error;
    return error;
  }
}
