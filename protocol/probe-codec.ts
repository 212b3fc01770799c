/** The lines of `probe-messages.ts` as text; what comes in is checked once, here. */
import { P4Error } from './errors.ts';
import { limits } from './limits.ts';
import { namePatternText } from './plan-schema.ts';
import { memberOf } from './plain-value.ts';
import { addressFlags, unreachableReasons, type ProbeAnswer, type ProbeOrder } from './probe-messages.ts';
import { compiledSchema } from './schema-fault.ts';

export const probeLine = (message: ProbeOrder | ProbeAnswer): string => `${JSON.stringify(message)}\n`;

/** @throws PROBE_PROTOCOL */
export const parseProbeOrder = (line: string): ProbeOrder => parsed(line, checkOrder, 'order');

/** @throws PROBE_PROTOCOL */
export const parseProbeAnswer = (line: string): ProbeAnswer => parsed(line, checkAnswer, 'answer');

function parsed<Message>(line: string, check: ReturnType<typeof compiledSchema<Message>>, what: string): Message {
  const value = jsonOf(line);
  if (check(value)) return value;
  const kind = memberOf(value, 'kind');
  throw new P4Error('PROBE_PROTOCOL', { what, found: typeof kind === 'string' ? kind.slice(0, 40) : typeof value });
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

const strict = (properties: Readonly<Record<string, object>>): object => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(properties),
  properties,
});

const kind = (name: string): object => ({ const: name });
const count = { type: 'integer', minimum: 0 };
const amount = { type: 'number', minimum: 0 };
const port = { type: 'integer', minimum: 1, maximum: 65_535 };
const text = { type: 'string', maxLength: 300 };
const name = { type: 'string', pattern: namePatternText };
const ipAddress = { type: 'string', format: 'ip-address' };
const id = count;
const why = { enum: unreachableReasons };

/** A zone stands behind a link-local address. */
const target = strict({ address: { type: 'string', format: 'address' }, port });

const checkOrder = compiledSchema<ProbeOrder>({
  anyOf: [
    strict({ kind: kind('begin'), host: name, secret: { type: 'string', pattern: '^[0-9a-f]{64}$' }, port }),
    strict({ kind: kind('reach'), id, target }),
    strict({ kind: kind('burst'), id, target }),
  ],
});

/** Also as fleet.json keeps it. */
export const hostAddressSchema = strict({
  address: ipAddress,
  prefixLength: { type: 'integer', minimum: 0, maximum: 128 },
  interface: { type: 'string', minLength: 1, maxLength: 15 },
  scope: { enum: ['global', 'link', 'host'] },
  flags: { type: 'array', maxItems: addressFlags.length, items: { enum: addressFlags } },
  isUp: { type: 'boolean' },
  mtu: count,
  linkMbps: count,
  listener: { anyOf: [strict({ kind: kind('port'), port }), strict({ kind: kind('none'), why: text })] },
});

const by = strict({ host: name, machineId: text });

export const reachOutcomeSchema = {
  anyOf: [
    strict({ kind: kind('reached'), by, seenAs: text, roundTripMs: amount }),
    strict({ kind: kind('frame-lost'), by }),
    strict({ kind: kind('unreachable'), why }),
  ],
};

export const burstOutcomeSchema = {
  anyOf: [
    strict({ kind: kind('measured'), upBytesPerSecond: amount, downBytesPerSecond: amount }),
    strict({ kind: kind('unmeasured'), why }),
  ],
};

const checkAnswer = compiledSchema<ProbeAnswer>({
  anyOf: [
    strict({
      kind: kind('began'),
      machineId: text,
      addresses: { type: 'array', maxItems: 2 * limits.probeAddresses, items: hostAddressSchema },
    }),
    strict({ kind: kind('reached'), id, outcome: reachOutcomeSchema }),
    strict({ kind: kind('measured'), id, outcome: burstOutcomeSchema }),
    strict({ kind: kind('failed'), why: text }),
  ],
});
