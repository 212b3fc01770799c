/** The operator's list of hosts, `fleet.json` in the state folder: where each is reached, since when, and why there. */
import { P4Error } from '../protocol/errors.ts';
import { hostName, type HostName } from '../protocol/ids.ts';
import { canonicalIp } from '../protocol/ip-address.ts';
import { limits } from '../protocol/limits.ts';
import { namePatternText, plainTextPattern } from '../protocol/plan-schema.ts';
import { compiledSchema } from '../protocol/schema-fault.ts';
import { makeOwnerFolder, ownerFileMode, readIfThere, writeDurably } from './durable-file.ts';
import { readStateText, stateText } from './state-document.ts';
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
}

/**
 * The fleet's hosts in the order they were added, `null` where there is no fleet yet.
 *
 * @throws FLEET_FILE_DAMAGED, STATE_UNREADABLE
 */
export async function readFleet(folder: StateFolder): Promise<readonly FleetHost[] | null> {
  const text = await readIfThere(folder.fleetFile);
  return text === null ? null : parseFleet(text, folder.fleetFile);
}

/** @throws FLEET_FILE_MISSING where there is no fleet yet; else as `readFleet` */
export async function knownFleet(folder: StateFolder): Promise<readonly FleetHost[]> {
  const hosts = await readFleet(folder);
  if (hosts === null) throw new P4Error('FLEET_FILE_MISSING', { file: folder.fleetFile });
  return hosts;
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
  await makeOwnerFolder(folder.root);
  return whileLocked(folder.fleetFile, async () => {
    const hosts = change((await readFleet(folder)) ?? []);
    const repetition = repetitionIn(hosts);
    if (repetition !== null || hosts.length > limits.fleetHosts) {
      const found = repetition ?? `${hosts.length} hosts`;
      throw new P4Error('INVALID_ARGUMENT', {
        what: 'fleet',
        found,
        expected: `at most ${limits.fleetHosts}, told apart`,
      });
    }
    const text = stateText({ format: 1, hosts } satisfies FleetFile);
    await writeDurably({ path: folder.fleetFile, text, mode: ownerFileMode });
    return hosts;
  });
}

/** The file's value. */
interface FleetFile {
  readonly format: 1;
  readonly hosts: readonly HostEntry[];
}

type HostEntry = Omit<FleetHost, 'name' | 'certificateName'> & {
  readonly name: string;
  readonly certificateName: string;
};

const checkFleetFile = compiledSchema<FleetFile>({
  type: 'object',
  description: 'a mapping of a fleet',
  additionalProperties: false,
  required: ['format', 'hosts'],
  properties: {
    format: { const: 1, description: 'the format 1' },
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
        },
      },
    },
  },
});

function parseFleet(text: string, file: string): readonly FleetHost[] {
  const reading = readStateText(text, file, checkFleetFile);
  if (reading.kind === 'damaged') throw new P4Error('FLEET_FILE_DAMAGED', { file, why: reading.why });
  const repetition = repetitionIn(reading.value.hosts);
  if (repetition !== null) throw new P4Error('FLEET_FILE_DAMAGED', { file, why: repetition });
  return reading.value.hosts.map((host) => ({
    ...host,
    name: hostName(host.name),
    certificateName: hostName(host.certificateName),
  }));
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
