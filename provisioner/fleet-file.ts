/** The operator's list of hosts, `fleet.json` in the state folder: where each is reached, since when, and why there. */
import { P4Error } from '../protocol/errors.ts';
import { hostName, type HostName } from '../protocol/ids.ts';
import { canonicalIp } from '../protocol/ip-address.ts';
import { limits } from '../protocol/limits.ts';
import { namePatternText, plainTextPattern } from '../protocol/plan-schema.ts';
import { compiledSchema } from '../protocol/schema-fault.ts';
import {
  checkHostNetwork,
  checkMeasurement,
  type FleetMeasurement,
  type HostNetwork,
} from './network/fleet-network.ts';
import { makeOwnerFolder, ownerFileMode, readIfThere, writeDurably } from './durable-file.ts';
import { readStateText, stateText } from './state-document.ts';
import { checkSshWay, type SshWay } from './ssh/ssh-way.ts';
import type { StateFolder } from './state-folder.ts';
import { whileLocked } from './state-lock.ts';

export interface FleetHost {
  readonly name: HostName;
  /** Where its agent answers: an IP address, or a DNS name. */
  readonly address: string;
  readonly port: number;
  /** The common name that its certificate must have. */
  readonly certificateName: HostName;
  /** Since when the address is this one, ISO 8601. */
  readonly since: string;
  /** Why it is this one, in a few words. */
  readonly why: string;
  /** What was measured of it, `null` where nothing was: a host of a local fleet. */
  readonly network: HostNetwork | null;
  /** How ssh comes to it where it has to pass others: then commands do; `null`: they dial its agent. */
  readonly ssh: SshWay | null;
}

export interface Fleet {
  readonly hosts: readonly FleetHost[];
  /** The attempts of the latest measurement, `null` before the first. */
  readonly measurement: FleetMeasurement | null;
}

/** Whether a host is an agent of `npm run agents`: `deploy` puts none into a fleet without having measured. */
export const isLocalHost = ({ network }: FleetHost): boolean => network === null;

/**
 * Where the operator's machine reaches an agent: it may not be in the network that the hosts use among themselves. Through
 * ssh the host itself dials it, where it is advertised.
 */
export const operatorAddressOf = ({ address, network }: FleetHost, isThroughSsh: boolean): string =>
  isThroughSsh ? address : (network?.operatorAddress ?? address);

const emptyFleet: Fleet = { hosts: [], measurement: null };

/**
 * The fleet's hosts in the order they were added, `null` where there is no fleet yet.
 *
 * @throws FLEET_FILE_DAMAGED, STATE_UNREADABLE
 */
export async function readFleet(folder: StateFolder): Promise<readonly FleetHost[] | null> {
  return (await readWholeFleet(folder))?.hosts ?? null;
}

/** As `readFleet`, with what was measured. */
export async function readWholeFleet(folder: StateFolder): Promise<Fleet | null> {
  const text = await readIfThere(folder.fleetFile);
  return text === null ? null : parseFleet(text, folder.fleetFile);
}

/** @throws FLEET_FILE_MISSING where there is no fleet yet; else as `readFleet` */
export async function knownFleet(folder: StateFolder): Promise<Fleet> {
  const fleet = await readWholeFleet(folder);
  if (fleet === null) throw new P4Error('FLEET_FILE_MISSING', { file: folder.fleetFile });
  return fleet;
}

/**
 * Changes the list while no other command does. What it returns is durable.
 *
 * @param change the hosts there are (none where there is no fleet yet) made the hosts there shall be: at most
 *   `limits.fleetHosts`, each name, and each address with its port, once
 * @throws INVALID_ARGUMENT when they are not; FLEET_FILE_DAMAGED, STATE_BUSY, STATE_UNREADABLE, STATE_UNWRITABLE
 */
export async function changeFleet(
  folder: StateFolder,
  change: (hosts: readonly FleetHost[]) => readonly FleetHost[],
): Promise<readonly FleetHost[]> {
  const fleet = await changeWholeFleet(folder, ({ hosts, measurement }) => ({ hosts: change(hosts), measurement }));
  return fleet.hosts;
}

/** As `changeFleet`, of hosts and measurement together; attempts of hosts that are gone go with them. */
export async function changeWholeFleet(folder: StateFolder, change: (fleet: Fleet) => Fleet): Promise<Fleet> {
  await makeOwnerFolder(folder.root);
  return whileLocked(folder.fleetFile, async () => {
    const { hosts, measurement } = change((await readWholeFleet(folder)) ?? emptyFleet);
    const repetition = repetitionIn(hosts);
    if (repetition !== null || hosts.length > limits.fleetHosts) {
      const found = repetition ?? `${hosts.length} hosts`;
      throw new P4Error('INVALID_ARGUMENT', {
        what: 'fleet',
        found,
        expected: `at most ${limits.fleetHosts}, told apart`,
      });
    }
    const fleet: Fleet = { hosts, measurement: measurement === null ? null : measurementOf(hosts, measurement) };
    const text = stateText({ format: 2, ...fleet } satisfies FleetFile);
    await writeDurably({ path: folder.fleetFile, text, mode: ownerFileMode });
    return fleet;
  });
}

function measurementOf(hosts: readonly FleetHost[], { at, cells }: FleetMeasurement): FleetMeasurement {
  const names = new Set(hosts.map(({ name }) => name));
  return { at, cells: cells.filter(({ from, to }) => names.has(from) && names.has(to)) };
}

/** The file's value; format 1 had no measurement, and read as one it still is a fleet. */
interface FleetFile {
  readonly format: 1 | 2;
  readonly hosts: readonly HostEntry[];
  readonly measurement?: unknown;
}

type HostEntry = Omit<FleetHost, 'name' | 'certificateName' | 'network' | 'ssh'> & {
  readonly name: string;
  readonly certificateName: string;
  readonly network?: unknown;
  readonly ssh?: unknown;
};

const checkFleetFile = compiledSchema<FleetFile>({
  type: 'object',
  description: 'a mapping of a fleet',
  additionalProperties: false,
  required: ['format', 'hosts'],
  properties: {
    format: { enum: [1, 2], description: 'the format 1 or 2' },
    measurement: { type: ['object', 'null'], description: 'what was measured between the hosts' },
    hosts: {
      type: 'array',
      maxItems: limits.fleetHosts,
      description: `a list of at most ${limits.fleetHosts} hosts`,
      items: {
        type: 'object',
        description: 'a host',
        additionalProperties: false,
        required: ['name', 'address', 'port', 'certificateName', 'since', 'why'],
        properties: {
          name: { type: 'string', pattern: namePatternText, description: "a host's name" },
          address: { type: 'string', format: 'address', description: 'a DNS name or an IP address' },
          port: { type: 'integer', minimum: 1, maximum: 65_535, description: 'a port, from 1 to 65535' },
          certificateName: { type: 'string', pattern: namePatternText, description: "a host's name" },
          since: { type: 'string', pattern: '^[0-9]{4}-[0-9T:.-]{1,30}Z$', description: 'a time' },
          why: { type: 'string', pattern: plainTextPattern, maxLength: 1000, description: 'a reason' },
          network: { type: ['object', 'null'], description: 'what was measured of the host' },
          ssh: { type: ['array', 'null'], description: 'how ssh comes to the host' },
        },
      },
    },
  },
});

function parseFleet(text: string, file: string): Fleet {
  const damaged = (why: string | readonly string[]): P4Error => new P4Error('FLEET_FILE_DAMAGED', { file, why });
  const { hosts, measurement = null } = fleetValue(text, file);
  const repetition = repetitionIn(hosts);
  if (repetition !== null) throw damaged(repetition);
  if (measurement !== null && !checkMeasurement(measurement)) throw damaged('/measurement is not what was written');
  return {
    hosts: hosts.map(({ network = null, ssh = null, ...host }) => {
      if (network !== null && !checkHostNetwork(network)) throw damaged(`/hosts: the network of ${host.name} is wrong`);
      if (ssh !== null && !checkSshWay(ssh)) throw damaged(`/hosts: the ssh way of ${host.name} is wrong`);
      return { ...host, name: hostName(host.name), certificateName: hostName(host.certificateName), network, ssh };
    }),
    measurement,
  };
}

/** A sound file may be larger than what people write by hand; only of a damaged one the lines are wanted. */
function fleetValue(text: string, file: string): FleetFile {
  const value = jsonOrNull(text);
  if (checkFleetFile(value)) return value;
  const reading = readStateText(text, file, checkFleetFile);
  if (reading.kind === 'damaged') throw new P4Error('FLEET_FILE_DAMAGED', { file, why: reading.why });
  return reading.value;
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What two hosts share that they must not, `null` for nothing. */
function repetitionIn(hosts: readonly HostEntry[]): string | null {
  const keysOf = [
    (host: HostEntry): string => `the name ${host.name}`,
    (host: HostEntry): string => `the address ${canonicalIp(host.address)} with port ${host.port}`,
  ];
  for (const keyOf of keysOf) {
    const keys = hosts.map(keyOf);
    const repeated = keys.find((key, index) => keys.indexOf(key) !== index);
    if (repeated !== undefined) return `${repeated} twice`;
  }
  return null;
}
