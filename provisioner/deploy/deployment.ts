/**
 * A deployment from beginning to end. Hosts are made ready first, all of them: release, facts and addresses. Only when
 * every one is ready is anything switched on any.
 */
import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import type { FleetHost } from '../fleet-file.ts';
import type { LoadedRing } from '../network/kept-choice.ts';
import { ensureCertificate, revokedList, standingCertificate } from '../pki.ts';
import type { Operator } from '../ssh/operator-config.ts';
import { becomeRoot, connect, lockHosts } from './access-phases.ts';
import { agentAddressOf } from './agent-access.ts';
import { actualScript, parseActual, type ActualState } from './actual.ts';
import {
  knownAddresses,
  listenOf,
  measureAddresses,
  noteAddresses,
  type AddressDecision,
  type Addresses,
} from './addresses-phase.ts';
import { makeAllChanges } from './change-phases.ts';
import { goesOn, isReady, type Deployment } from './deploy-order.ts';
import { desiredResources } from './desired.ts';
import { changesOf, type Change, type ReleaseState } from './difference.ts';
import { gatherFacts } from './facts-phase.ts';
import { refuseForeignState } from './foreign-state.ts';
import { onHosts } from './fork.ts';
import { hostLayout } from '../host-layout.ts';
import type { HostRun } from './host-run.ts';
import { runHostScript } from '../ssh/host-script.ts';
import { loadedRings } from './loaded-rings.ts';
import { monitoringDesire } from './monitoring/monitoring-desire.ts';
import { setUpMonitoring, tellMonitoring } from './monitoring/monitoring-phase.ts';
import { noteEndedRings, refuseEndedRings } from './ring-guard.ts';
import {
  ownArchitecture,
  pruneOld,
  releaseFor,
  releaseStateOn,
  ReleaseShelf,
  sendReleases,
  type HostRelease,
  type HostReleases,
} from './release-phase.ts';
import { agentPhaseOf } from './phase.ts';
import type { Resource } from './resource.ts';
import { switchHosts } from './switch-phases.ts';
import { beginPhase } from './telling.ts';
import { tryRelease } from './trial.ts';

/** Runs all phases that are asked for. What becomes of each host stands at the host. */
export async function runDeployment(deployment: Deployment, operator: Operator): Promise<void> {
  const { order } = deployment;
  const shelf = await ReleaseShelf.open(order.state);
  // Put together while hosts are connected to; a failure is told where the release is asked for.
  shelf.release(ownArchitecture, 'none').catch(() => undefined);
  await connect(deployment, operator);
  await becomeRoot(deployment);
  if (!goesOn(deployment)) return;
  await lockHosts(deployment);
  if (!goesOn(deployment)) return;
  beginPhase(deployment, 'facts');
  await gatherFacts(deployment, deployNeeds, shelf);
  if (!goesOn(deployment)) return;
  await deployReleases(deployment, shelf);
  await shelf.close();
}

const runsStages = (host: HostRun): boolean => !host.hasFailed && host.hasFacts && host.facts.stageUnits.length > 0;

const deployNeeds = { architecture: ownArchitecture } as const;

async function deployReleases(deployment: Deployment, shelf: ReleaseShelf): Promise<void> {
  const { order } = deployment;
  beginPhase(deployment, 'release');
  const known = await knownAddresses(deployment);
  const releases = await surveyHosts(deployment, { shelf, known });
  const rings = await loadedRings(deployment, deployment.hosts.filter(runsStages));
  if (order.isCheck) {
    tellPredicted(deployment);
    tellMonitoring(deployment);
    noteEndedRings(deployment, rings);
  }
  refuseSurveyed(deployment, { releases, known, rings });
  if (order.isCheck || !isReady(deployment)) return;
  if (order.phases.has('release')) await sendReleases(deployment, releases);
  if (!isReady(deployment)) return;
  const decision = await decideAddresses(deployment, { releases, known, rings });
  if (decision === null) return;
  const { addresses } = decision;
  await planHosts(deployment, { releases, addresses });
  refuseEndedRings(deployment, rings);
  if (!isReady(deployment)) return;
  noteEndedRings(deployment, rings);
  await prepareAndSwitch(deployment, { releases, decision });
}

/** `null` where not every host has an address. */
async function decideAddresses(
  deployment: Deployment,
  work: { readonly releases: HostReleases; readonly known: Addresses; readonly rings: readonly LoadedRing[] },
): Promise<AddressDecision | null> {
  const { order, hosts } = deployment;
  const isKnown = hosts.every(({ name }) => work.known.has(name));
  if (isKnown && !order.measuresAnew) return { addresses: work.known, measurement: null };
  if (!order.phases.has('addresses')) return isKnown ? { addresses: work.known, measurement: null } : null;
  beginPhase(deployment, 'addresses');
  const decision = await measureAddresses(deployment, work);
  return isReady(deployment) ? decision : null;
}

interface SurveyNeeds {
  readonly shelf: ReleaseShelf;
  readonly known: Addresses;
}

/** Reads each host, once: before anything is changed on it. What a run has still to make counts as different. */
async function surveyHosts(deployment: Deployment, { shelf, known }: SurveyNeeds): Promise<HostReleases> {
  const { order, hosts, signal } = deployment;
  const releases = new Map<HostRun, HostRelease>();
  await onHosts({ phase: 'release', hosts, forks: order.forks }, async (host) => {
    const release = await releaseFor(host, shelf);
    const desired = await desiredOn(deployment, host, { releaseId: release.id, addresses: known, isFinal: false });
    const all = [...desired.agent, ...desired.monitoring];
    const [state, text] = await Promise.all([
      releaseStateOn(host, release, signal),
      runHostScript(host.session, 'look at the host', { script: actualScript(all), signal }),
    ]);
    const actual = parseActual(host.name, all, text);
    host.actual = host.madeFolder ? withoutMadeFolder(actual) : actual;
    refuseForeignState(host.host, host.actual);
    host.plan(all, changesFor(host, desired, state));
    releases.set(host, { release, state });
  });
  return releases;
}

interface Planning {
  readonly releases: HostReleases;
  readonly addresses: Addresses;
}

/** Compares once more, with the addresses that were chosen and certificates made for them. */
async function planHosts(deployment: Deployment, { releases, addresses }: Planning): Promise<void> {
  const { order, hosts, report } = deployment;
  await onHosts({ phase: report.current ?? 'addresses', hosts, forks: order.forks }, async (host) => {
    const { release, state } = present(releases.get(host), 'the release of the host is known');
    const desired = await desiredOn(deployment, host, { releaseId: release.id, addresses, isFinal: true });
    host.plan([...desired.agent, ...desired.monitoring], changesFor(host, desired, state));
  });
}

/** What shall be on a host: for its agent, and for the monitoring of the fleet. */
interface HostDesire {
  readonly agent: readonly Resource[];
  readonly monitoring: readonly Resource[];
}

/** Two lists that know nothing of each other: a change of the one restarts nothing of the other. */
function changesFor({ actual }: HostRun, desire: HostDesire, release: ReleaseState): readonly Change[] {
  return [
    ...changesOf({ desired: desire.agent, actual, release, phaseOf: agentPhaseOf }),
    ...changesOf({ desired: desire.monitoring, actual, release, phaseOf: () => 'monitoring' }),
  ];
}

interface HostChoices {
  readonly releaseId: string;
  readonly addresses: Addresses;
  /** Whether a certificate that is missing is made. */
  readonly isFinal: boolean;
}

async function desiredOn(
  deployment: Deployment,
  host: HostRun,
  { releaseId, addresses, isFinal }: HostChoices,
): Promise<HostDesire> {
  const entry = addresses.get(host.name) ?? null;
  const agent = desiredResources({
    host: host.host,
    facts: host.facts,
    releaseId,
    listen: entry === null ? null : listenOf(entry),
    identity: entry === null ? null : await identityOf(deployment, host, { entry, isFinal }),
    revoked: await revokedList(deployment.order.state),
  });
  return { agent, monitoring: await monitoringDesire(deployment.order, host, { addresses, isFinal }) };
}

/** The lock's folder is the first thing that a run makes: a change like others. */
const withoutMadeFolder = (actual: ActualState): ActualState => ({
  ...actual,
  paths: new Map(actual.paths).set(hostLayout.programs, { kind: 'absent' }),
});

interface IdentityNeeds {
  readonly entry: FleetHost;
  readonly isFinal: boolean;
}

async function identityOf(
  { order }: Deployment,
  { name }: HostRun,
  { entry, isFinal }: IdentityNeeds,
): Promise<TlsIdentity | null> {
  const addresses = listenOf(entry).map(({ address }) => address.split('%')[0] ?? address);
  const holder = { role: 'agent', host: name, addresses } as const;
  if (!isFinal) return standingCertificate(order.state, holder, new Date());
  return (await ensureCertificate(order.state, holder, new Date())).identity;
}

/** With `--check`: what a run would change, all of it, and nothing else. */
function tellPredicted({ order, hosts, report }: Deployment): void {
  for (const host of hosts.filter(({ hasFailed }) => !hasFailed)) {
    for (const change of host.changes.filter(({ phase }) => order.phases.has(phase))) {
      host.noteMade(change);
      report.change(host.name, change);
    }
  }
}

interface Survey {
  readonly releases: HostReleases;
  readonly known: Addresses;
  readonly rings: readonly LoadedRing[];
}

/** What is known before anything is sent or switched; a check ends by it as the run does. */
function refuseSurveyed(deployment: Deployment, { releases, known, rings }: Survey): void {
  const { order, hosts, report } = deployment;
  if (!order.phases.has('release')) refuseUnsent(deployment, releases);
  if (!order.phases.has('addresses')) {
    const why = 'not measured yet, and --tags leaves out the phase addresses';
    for (const host of hosts.filter(({ name }) => !known.has(name)))
      host.fail(report.current ?? 'release', new P4Error('ADVERTISE_NONE', { host: host.name, why }));
  }
  refuseEndedRings(deployment, rings);
}

/** With `--tags`, the release may be left out: then it has to be there where it is switched to. */
function refuseUnsent({ order, hosts }: Deployment, releases: HostReleases): void {
  const isUsed = order.phases.has('services') || order.phases.has('trial') || order.phases.has('addresses');
  if (!isUsed) return;
  for (const host of hosts) {
    const found = releases.get(host);
    if (found !== undefined && found.state !== 'whole')
      host.fail('release', new P4Error('RELEASE_NOT_SENT', { host: host.name, release: found.release.id }));
  }
}

interface Ready {
  readonly releases: HostReleases;
  readonly decision: AddressDecision;
}

async function prepareAndSwitch(deployment: Deployment, { releases, decision }: Ready): Promise<void> {
  const { order } = deployment;
  const { phases } = order;
  const { addresses } = decision;
  if (phases.has('accounts')) {
    beginPhase(deployment, 'accounts');
    await makeAllChanges(deployment, 'accounts');
    if (!isReady(deployment)) return;
  }
  const { identity: operator } = await ensureCertificate(order.state, { role: 'operator' }, new Date());
  if (phases.has('trial')) {
    await tryReleases(deployment, { releases, addresses, operator });
    if (!isReady(deployment)) return;
  }
  deployment.signal.throwIfAborted();
  await switchHosts(deployment, { addresses, operator });
  if (isReady(deployment) && phases.has('services')) {
    await noteAddresses(deployment, decision);
    await pruneOld(deployment);
  }
  if (isReady(deployment) && phases.has('monitoring')) await setUpMonitoring(deployment, addresses);
}

interface TrialNeeds {
  readonly releases: HostReleases;
  readonly addresses: Addresses;
  readonly operator: TlsIdentity;
}

/** On every host whose release is new to it. */
async function tryReleases(deployment: Deployment, { releases, addresses, operator }: TrialNeeds): Promise<void> {
  const { order, hosts } = deployment;
  const isNew = ({ changes }: HostRun): boolean => changes.some(({ resource }) => resource.kind === 'link');
  const tried = hosts.filter(isNew);
  if (tried.length === 0) return;
  beginPhase(deployment, 'trial');
  await onHosts({ phase: 'trial', hosts: tried, forks: order.forks }, async (host) => {
    const { release } = present(releases.get(host), 'the release of the host is known');
    const entry = present(addresses.get(host.name), 'the address of the host is decided');
    const agent = await identityOf(deployment, host, { entry, isFinal: true });
    await tryRelease(deployment, {
      host,
      releaseId: release.id,
      address: entry.address,
      operatorAddress: agentAddressOf(host, entry),
      agent: present(agent, 'a run makes certificates'),
      operator,
    });
  });
}
