/** The phase `addresses`: where every host's agent listens and is reached (A1, A2): as decided before, or measured now. */
import type { HostName } from '../../protocol/ids.ts';
import { canonicalIp } from '../../protocol/ip-address.ts';
import type { NetAddress } from '../../protocol/net-address.ts';
import { shellWords } from '../ssh/shell-quoting.ts';
import { changeWholeFleet, readWholeFleet, type Fleet, type FleetHost } from '../fleet-file.ts';
import { chooseAddresses, type AddressChoice, type HostDecision } from '../network/address-choice.ts';
import { addressTable, choiceText } from '../network/choice-text.ts';
import { hostMove, type LoadedRing } from '../network/kept-choice.ts';
import { probeProgram, startLocalProbe } from '../network/local-probe.ts';
import { measureNetwork, operatorAddress, type NetworkMeasurement } from '../network/network-probe.ts';
import { ReachMatrix } from '../network/reach-matrix.ts';
import { rejectionText } from '../network/rejection.ts';
import type { Deployment } from './deploy-order.ts';
import { strayHosts } from './fleet-members.ts';
import { releaseFolder } from '../host-layout.ts';
import type { HostRun } from './host-run.ts';
import type { HostReleases } from './release-phase.ts';

/** Hosts without a decision are not in it. */
export type Addresses = ReadonlyMap<HostName, FleetHost>;

/** What was decided, and what it was decided from. */
export interface AddressDecision {
  readonly addresses: Addresses;
  /** `null` where nothing was measured now. */
  readonly measurement: NetworkMeasurement | null;
}

/** What earlier runs decided and still holds. */
export async function knownAddresses({ order, hosts }: Deployment): Promise<Addresses> {
  const fleet = await readWholeFleet(order.state);
  const known = hosts.flatMap((host): readonly [HostName, FleetHost][] => {
    const entry = fleet?.hosts.find(({ name }) => name === host.name);
    return entry !== undefined && isStanding(host, entry) ? [[host.name, asReached(host, entry)]] : [];
  });
  return new Map(known);
}

/** How it is reached is the inventory's to say, every time. */
const asReached = (run: HostRun, entry: FleetHost): FleetHost => ({
  ...entry,
  port: run.host.variables.ports.agent,
  ssh: run.isConnected ? run.session.way : entry.ssh,
});

/** Whether a decision is still what the inventory asks for, and the address still the host's. */
function isStanding(run: HostRun, { address, network }: FleetHost): boolean {
  if (network === null) return false;
  const plain = plainAddress(address);
  const own = run.hasFacts ? run.facts.addresses.map(canonicalIp) : [];
  if (own.length > 0 && !own.includes(plain)) return false;
  const { advertise } = run.host.variables;
  switch (advertise.kind) {
    case 'measured':
      return !network.isFixed;
    case 'address':
      return canonicalIp(advertise.address) === plain;
    case 'interface':
      return network.addresses.some(
        (each) => canonicalIp(each.address) === plain && each.interface === advertise.interface,
      );
  }
}

const plainAddress = (address: string): string => canonicalIp(address.split('%')[0] ?? address);

/** What is measured, and for which decision. */
export interface AddressWork {
  readonly releases: HostReleases;
  readonly known: Addresses;
  readonly rings: readonly LoadedRing[];
}

/**
 * Measures every pair of the hosts and decides. A host without an address that serves fails.
 * @throws PROBE_FAILED, PROBE_PROTOCOL, and those of ssh
 */
export async function measureAddresses(deployment: Deployment, work: AddressWork): Promise<AddressDecision> {
  const { hosts, report, signal } = deployment;
  const able = hosts.filter(({ hasFailed }) => !hasFailed);
  const overrides = new Map(able.map(({ name, host }) => [name, host.variables.advertise]));
  const former = new Map([...work.known].map(([host, { address }]) => [host, plainAddress(address)]));
  const measurement = await measureNetwork({
    hosts: able.map((host) => ({ host: host.name, start: () => startProbe(host, work.releases, signal) })),
    operator: () => startLocalProbe(),
    overrides,
    former,
    progress: (what, fraction) => {
      report.progress(what, fraction);
    },
    signal,
  });
  const choice = chooseAddresses({
    hosts: able.map(({ name }) => name),
    candidates: measurement.candidates,
    matrix: new ReachMatrix(measurement.cells),
    overrides,
    former,
    isInDoubt: !measurement.isSettled,
    sshAddresses: new Map(able.map(({ name, host }) => [name, host.connection.address])),
  });
  tell(deployment, choice, measurement);
  refuse(able, choice);
  const decided = choice.decisions.flatMap((decision): readonly [HostName, FleetHost][] => {
    const host = able.find(({ name }) => name === decision.host);
    const entry = host === undefined ? null : entryOf({ deployment, host, decision, measurement, ...work });
    return entry === null ? [] : [[decision.host, entry]];
  });
  return { addresses: new Map(decided), measurement };
}

function startProbe(
  { session, name }: HostRun,
  releases: HostReleases,
  signal: AbortSignal,
): ReturnType<HostRun['session']['start']> {
  const id = [...releases].find(([host]) => host.name === name)?.[1].release.id ?? '';
  const folder = releaseFolder(id);
  return session.start({
    script: `exec ${shellWords(`${folder}/runtime/bin/node`, `${folder}/${probeProgram}`)}`,
    signal,
  });
}

function tell({ report }: Deployment, choice: AddressChoice, measurement: NetworkMeasurement): void {
  report.lines(addressTable(choice));
  report.event({
    event: 'addresses',
    decisions: choice.decisions.map(({ host, chosen, rejected }) => ({
      host,
      chosen: chosen === null ? null : { address: chosen.address, why: choiceText(chosen.reason) },
      rejected: rejected.map(({ address, rejection }) => ({ address, why: rejectionText(rejection) })),
    })),
    cells: measurement.cells,
  });
}

/** Each refusal is one host's failure; it names the host. */
function refuse(hosts: readonly HostRun[], { refusals }: AddressChoice): void {
  for (const refusal of refusals) {
    const host = hosts.find(({ name }) => name === refusal.facts['host']) ?? hosts[0];
    host?.fail('addresses', refusal);
  }
}

interface EntryNeeds extends AddressWork {
  readonly deployment: Deployment;
  readonly host: HostRun;
  readonly decision: HostDecision;
  readonly measurement: NetworkMeasurement;
}

/** `null` where no address serves. */
function entryOf({ deployment, host, decision, measurement, known, rings }: EntryNeeds): FleetHost | null {
  const { chosen, listen, rejected } = decision;
  const former = known.get(host.name) ?? null;
  if (chosen === null) return null;
  const move = hostMove(decision, former === null ? null : plainAddress(former.address), rings);
  if (move.kind === 'stay' && former !== null) {
    deployment.report.note(move.notice);
    return former;
  }
  const [address = chosen.address] = listen;
  const reachedAt = operatorAddress(measurement.operatorCells, host.name, listen.map(plainAddress));
  if (reachedAt === null && host.session.way === null)
    deployment.report.note(unreachedNote(host, listen.map(plainAddress)));
  const isSame = former !== null && canonicalIp(former.address) === canonicalIp(address);
  return {
    name: host.name,
    address,
    port: host.host.variables.ports.agent,
    certificateName: host.name,
    since: isSame ? former.since : new Date().toISOString(),
    why: isSame ? former.why : choiceText(chosen.reason),
    network: {
      listen,
      operatorAddress: reachedAt === null || reachedAt === plainAddress(address) ? null : reachedAt,
      isFixed: host.host.variables.advertise.kind !== 'measured',
      addresses: measurement.candidates.find((each) => each.host === host.name)?.addresses ?? [],
      rejected: rejected.map(({ address: each, rejection }) => ({ address: each, why: rejectionText(rejection) })),
    },
    ssh: host.session.way,
  };
}

/** The probe's port was closed from here; a firewall may yet let the agent's own through, so this is no failure. */
const unreachedNote = ({ name, host }: HostRun, listen: readonly string[]): string =>
  `${name}: this machine reaches none of ${listen.join(', ')}; commands need port ${host.variables.ports.agent} of one open from here`;

export const listenOf = ({ network, address, port }: FleetHost): readonly NetAddress[] =>
  (network?.listen ?? [address]).map((each) => ({ address: each, port }));

/** Writes down where the hosts are. What is known of others stays, but agents for local use are no part of the fleet. */
export async function noteAddresses({ order }: Deployment, decision: AddressDecision): Promise<void> {
  const { addresses, measurement } = decision;
  await changeWholeFleet(order.state, (fleet) => {
    const { local } = strayHosts(fleet.hosts, order.inventory);
    return {
      hosts: [
        ...fleet.hosts.filter(({ name }) => !local.includes(name)).map((host) => addresses.get(host.name) ?? host),
        ...[...addresses.values()].filter(({ name }) => !fleet.hosts.some((host) => host.name === name)),
      ],
      measurement: measurement === null ? fleet.measurement : mergedMeasurement(fleet, measurement),
    };
  });
}

function mergedMeasurement({ measurement: former }: Fleet, { cells }: NetworkMeasurement): Fleet['measurement'] {
  const measured = new Set(cells.map(({ from, to }) => `${from} ${to}`));
  const kept = former?.cells.filter(({ from, to }) => !measured.has(`${from} ${to}`)) ?? [];
  return { at: new Date().toISOString(), cells: [...kept, ...cells] };
}
