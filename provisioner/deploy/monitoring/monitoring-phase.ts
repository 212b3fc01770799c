/**
 * The phase `monitoring`: Prometheus and Grafana on the inventory's monitoring host, after the agents have proved themselves.
 * Nothing of an agent depends on it: what fails here leaves them as they are.
 */
import { setTimeout as pause } from 'node:timers/promises';

import { present } from '../../../protocol/assert.ts';
import { P4Error } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { monitoringLimits } from '../../../protocol/monitoring-limits.ts';
import { runHostScript } from '../../ssh/host-script.ts';
import type { Addresses } from '../addresses-phase.ts';
import { applyScript } from '../apply.ts';
import { makeChanges } from '../change-phases.ts';
import type { Deployment } from '../deploy-order.ts';
import type { Change } from '../difference.ts';
import { onHosts } from '../fork.ts';
import { unitWords } from '../former-state.ts';
import type { HostRun } from '../host-run.ts';
import { beginPhase } from '../telling.ts';
import { handWork } from './by-hand.ts';
import { trialScript } from './config-trial.ts';
import { fleetTargets, isMonitoringHost } from './monitoring-desire.ts';
import { readMonitoringFiles } from './monitoring-files.ts';
import { monitoringLayout } from './monitoring-layout.ts';
import { listenPort, monitoringWay, type MonitoringWay } from './monitoring-way.ts';
import { installationMs } from './package-installation.ts';
import { readiness, targetsOf, type PrometheusAccess } from './prometheus-api.ts';
import { awaited, targetHealth, type TargetHealth } from './target-watch.ts';
import type { Target } from './targets.ts';
import { leftBehind } from './withdrawal.ts';

const phase = 'monitoring';

/** Hosts that fail are told at the host. */
export async function setUpMonitoring(deployment: Deployment, addresses: Addresses): Promise<void> {
  const { order, hosts, signal } = deployment;
  const former = hosts.filter((host) => !isMonitoringHost(order, host.name) && host.changesIn(phase).length > 0);
  if (order.inventory.monitoring === null && former.length === 0) return;
  signal.throwIfAborted();
  beginPhase(deployment, phase);
  await onHosts({ phase, hosts: former, forks: order.forks }, async (host) => {
    await makeChanges(deployment, host, phase);
    tellLeftBehind(deployment, host, host.facts.monitoringPieces);
  });
  tellMonitoring(deployment);
  const watcher = hosts.filter(({ name }) => isMonitoringHost(order, name));
  await onHosts({ phase, hosts: watcher, forks: 1 }, (host) => setUp(deployment, host, addresses));
}

export function tellLeftBehind({ report }: Deployment, { name }: HostRun, pieces: readonly string[]): void {
  for (const text of leftBehind(pieces)) report.host(name, text);
}

/** Where the monitoring host is no part of a run or a removal. */
export function tellStaleTargets({ order, hosts, report }: Deployment): void {
  const { monitoring } = order.inventory;
  if (monitoring === null || hosts.some(({ name }) => name === monitoring.host)) return;
  report.note(
    `The targets of Prometheus on ${monitoring.host} are not brought up to date: this run leaves that host out.`,
  );
}

/** What is not done by the run, whether it is one or a check. */
export function tellMonitoring(deployment: Deployment): void {
  const { order, hosts, report } = deployment;
  if (!order.phases.has(phase)) return;
  tellStaleTargets(deployment);
  const host = hosts.find(({ name }) => isMonitoringHost(order, name));
  if (host === undefined || host.hasFailed) return;
  const work = handWork(monitoringWay(host.monitoring));
  if (work === null) return;
  report.host(host.name, work.why);
  report.lines(work.lines.map((line) => `    ${line}`));
  report.event({ event: 'monitoring-by-hand', host: host.name, ...work });
}

async function setUp(deployment: Deployment, host: HostRun, addresses: Addresses): Promise<void> {
  const { order, signal } = deployment;
  const way = monitoringWay(host.monitoring);
  const inventoryPort = present(order.inventory.monitoring, 'the inventory names a monitoring host').port;
  const port = listenPort(host.monitoring, inventoryPort);
  for (const change of host.changesIn(phase)) {
    if (change.resource.kind === 'package') await install(deployment, host, change);
  }
  if (host.changesIn(phase).length > 0) {
    await tryConfig(host, port);
    await makeChanges(deployment, host, phase);
  }
  const targets = (await fleetTargets(order, addresses)) ?? [];
  await watch(deployment, { host, way, access: { session: host.session, port, signal }, targets });
}

/** @throws PACKAGE_NOT_INSTALLED, HOST_LOST, HOST_DISK_FULL */
async function install({ report }: Deployment, host: HostRun, change: Change): Promise<void> {
  const { package: name } = monitoringLayout;
  report.at(host.name, `installing ${name}`);
  try {
    await runHostScript(host.session, `install ${name}`, { ...applyScript([change]), timeoutMs: installationMs });
  } catch (error) {
    const isOurs = error instanceof P4Error && (error.code === 'HOST_SCRIPT_FAILED' || error.code === 'HOST_TIMEOUT');
    if (!isOurs) throw error;
    const said = error.facts['said'] ?? 'nothing';
    throw new P4Error('PACKAGE_NOT_INSTALLED', { host: host.name, package: name, said }, error);
  } finally {
    report.at(host.name, null);
  }
  host.noteMade(change);
  report.change(host.name, change);
}

/** @throws PROMETHEUS_CONFIG_REFUSED, HOST_LOST, HOST_DISK_FULL */
async function tryConfig({ name, session, monitoring }: HostRun, port: number): Promise<void> {
  const { hasNodeExporter } = monitoring;
  const trial = trialScript(readMonitoringFiles(), { port, hasNodeExporter });
  try {
    await runHostScript(session, 'try the configuration of Prometheus', {
      ...trial,
      timeoutMs: monitoringLimits.readyMs,
    });
  } catch (error) {
    if (!(error instanceof P4Error) || error.code !== 'HOST_SCRIPT_FAILED') throw error;
    throw new P4Error('PROMETHEUS_CONFIG_REFUSED', { host: name, said: error.facts['said'] ?? '' }, error);
  }
}

interface Watched {
  readonly host: HostRun;
  readonly way: MonitoringWay;
  readonly access: PrometheusAccess;
  readonly targets: readonly Target[];
}

/** Prometheus has to answer where it is deploy's; whether it gets at every agent is told, and no failure. */
async function watch(deployment: Deployment, watched: Watched): Promise<void> {
  const { report } = deployment;
  const { host, way, access } = watched;
  if (way.kind === 'files' || (way.kind === 'own-config' && !way.readsOurs)) return;
  try {
    const why = await readyWithin(deployment, watched);
    if (why === null) tellTargets(deployment, watched, await scrapedWithin(deployment, watched));
    else if (way.kind === 'own-config') report.host(host.name, `its Prometheus does not answer: ${why}`);
    else {
      const said = (await unitWords(host.session, monitoringLayout.unit)).slice(-limits.saidLines);
      throw new P4Error('PROMETHEUS_NOT_ANSWERING', { host: host.name, port: access.port, why, said });
    }
  } catch (error) {
    if (!(error instanceof P4Error) || error.code !== 'SSH_FORWARDING_REFUSED') throw error;
    report.host(host.name, 'whether Prometheus answers cannot be seen from here: its sshd forwards nothing');
  } finally {
    report.at(host.name, null);
  }
}

/** `null` once it is ready, else why it is not, after it had its time. */
async function readyWithin({ report }: Deployment, { host, access }: Watched): Promise<string | null> {
  report.at(host.name, 'waiting for Prometheus');
  const deadline = performance.now() + monitoringLimits.readyMs;
  for (;;) {
    const why = await readiness(access);
    if (why === null || performance.now() >= deadline) return why;
    await pause(retryMs);
  }
}

const retryMs = 250;

async function scrapedWithin(
  { order, report }: Deployment,
  { host, access, targets }: Watched,
): Promise<readonly TargetHealth[]> {
  const inRun = new Set(order.hosts.map(({ name }) => name));
  const deadline = performance.now() + monitoringLimits.scrapeMs;
  for (;;) {
    const found = targetHealth(targets, (await targetsOf(access, 'p4')) ?? []);
    const missing = awaited(found, inRun);
    if (missing.length === 0 || performance.now() >= deadline) return found;
    report.at(host.name, `waiting until Prometheus has scraped ${missing.map((target) => target.host).join(', ')}`);
    await pause(retryMs);
  }
}

function tellTargets({ report }: Deployment, { host, access }: Watched, found: readonly TargetHealth[]): void {
  const up = found.filter(({ health }) => health === 'up').length;
  report.host(host.name, `Prometheus answers on port ${access.port} and scrapes ${up} of ${found.length} agents`);
  for (const { host: name, health, why } of found)
    if (health !== 'up') report.note(`Prometheus does not get at ${name}: ${why}`);
  report.event({ event: 'monitoring', host: host.name, port: access.port, targets: found });
}
