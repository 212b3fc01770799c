/** What fleet.json keeps of a measurement, and which addresses follow from it for a ring (A1). Pure. */
import type { HostName } from '../../protocol/ids.ts';
import { isZonedIpv6 } from '../../protocol/ip-address.ts';
import { namePatternText } from '../../protocol/plan-schema.ts';
import { burstOutcomeSchema, hostAddressSchema, reachOutcomeSchema } from '../../protocol/probe-codec.ts';
import type { HostAddress } from '../../protocol/probe-messages.ts';
import { compiledSchema } from '../../protocol/schema-fault.ts';
import type { Fleet, FleetHost } from '../fleet-file.ts';
import { chooseAddresses } from './address-choice.ts';
import { ReachMatrix, type ReachCell } from './reach-matrix.ts';

/** What was measured of one host, and decided. */
export interface HostNetwork {
  /** Where its agent listens, the advertised address first; link-local ones with the host's own zone. */
  readonly listen: readonly string[];
  /** Where the operator reaches it; `null`: at the advertised address, or only through ssh. */
  readonly operatorAddress: string | null;
  /** Whether the inventory named the address: then no ring uses another. */
  readonly isFixed: boolean;
  readonly addresses: readonly HostAddress[];
  /** Addresses that were not chosen, with the reason in words. */
  readonly rejected: readonly { readonly address: string; readonly why: string }[];
}

export interface FleetMeasurement {
  /** ISO 8601. */
  readonly at: string;
  readonly cells: readonly ReachCell[];
}

const text = { type: 'string', maxLength: 2000 };
const textOrNull = { type: ['string', 'null'], maxLength: 300 };
const name = { type: 'string', pattern: namePatternText };
const strict = (properties: Readonly<Record<string, object>>): object => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(properties),
  properties,
});

export const checkHostNetwork = compiledSchema<HostNetwork>(
  strict({
    listen: { type: 'array', minItems: 1, items: { type: 'string', format: 'address' } },
    operatorAddress: textOrNull,
    isFixed: { type: 'boolean' },
    addresses: { type: 'array', items: hostAddressSchema },
    rejected: { type: 'array', items: strict({ address: text, why: text }) },
  }),
);

export const checkMeasurement = compiledSchema<FleetMeasurement>(
  strict({
    at: text,
    cells: {
      type: 'array',
      items: strict({
        ...{ from: name, to: name, address: text, zone: textOrNull, reach: reachOutcomeSchema },
        burst: { anyOf: [burstOutcomeSchema, { type: 'null' }] },
      }),
    },
  }),
);

/**
 * Where the agents of a ring's hosts are to reach each other: at a network that just these hosts share where that is
 * clearly faster, else where they are advertised. Only where each of them listens.
 */
export function ringAddresses(fleet: Fleet, hosts: readonly HostName[]): ReadonlyMap<HostName, string> {
  const members = fleet.hosts.filter(({ name: host }) => hosts.includes(host));
  const advertised = new Map(members.map(({ name: host, address }) => [host, address]));
  const { measurement } = fleet;
  if (measurement === null || members.length < 2 || members.some(({ network }) => network === null)) return advertised;
  const { decisions, refusals } = chooseAddresses({
    hosts: members.map(({ name: host }) => host),
    candidates: members.map((host) => ({ host: host.name, addresses: listenedAt(host) })),
    matrix: new ReachMatrix(measurement.cells),
    overrides: new Map(members.flatMap(fixedAddress)),
    former: new Map(members.map(({ name: host, address }) => [host, withoutZone(address)])),
    sshAddresses: new Map(),
  });
  if (refusals.length > 0) return advertised;
  return new Map(
    decisions.map(({ host, chosen }) => {
      const own = advertised.get(host) ?? '';
      return [host, chosen === null || chosen.isLinkLocal ? own : chosen.address];
    }),
  );
}

const withoutZone = (address: string): string => address.split('%')[0] ?? address;

function listenedAt({ network }: FleetHost): readonly HostAddress[] {
  const listened = new Set(network?.listen.map(withoutZone));
  return network?.addresses.filter(({ address }) => listened.has(address)) ?? [];
}

const fixedAddress = ({
  name: host,
  address,
  network,
}: FleetHost): [HostName, { kind: 'address'; address: string }][] =>
  network?.isFixed === true ? [[host, { kind: 'address', address: withoutZone(address) }]] : [];

/** An address as `from` has to dial it: a link-local one over its own interface to that host. */
export function dialledAddress(
  fleet: Fleet,
  way: { readonly from: HostName; readonly to: HostName },
  address: string,
): string {
  if (!isZonedIpv6(address)) return address;
  const plain = withoutZone(address);
  const cell = fleet.measurement?.cells.find(
    ({ from, to, address: tried, reach }) =>
      from === way.from && to === way.to && tried === plain && reach.kind === 'reached' && reach.by.host === to,
  );
  const zone = cell?.zone ?? null;
  return zone === null ? address : `${plain}%${zone}`;
}
