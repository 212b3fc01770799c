/** How ssh comes to a host that is reached over others: what fleet.json keeps of it, so that every command can go there. */
import type { SshTarget } from '../../protocol/inventory.ts';
import { limits } from '../../protocol/limits.ts';
import { compiledSchema } from '../../protocol/schema-fault.ts';

/** One login as the inventory has it: what it leaves open, the operator's ssh configuration says when it is used. */
export interface SshLogin extends SshTarget {
  /** What people call the machine: the host's name in the inventory, the address of any other machine. */
  readonly label: string;
}

/**
 * Logins in the order in which they are passed; the last one is the host's own. Key files have absolute paths.
 * One login alone stands for a way whose jumps are in the operator's ssh configuration.
 */
export type SshWay = readonly SshLogin[];

const path = { type: 'string', pattern: '^/', maxLength: 4096 };

export const checkSshWay = compiledSchema<SshWay>({
  type: 'array',
  minItems: 1,
  maxItems: limits.sshHops,
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['label', 'address', 'port', 'user', 'key'],
    properties: {
      label: { type: 'string', minLength: 1, maxLength: 300 },
      address: { type: 'string', format: 'address' },
      port: { type: 'integer', minimum: 1, maximum: 65_535 },
      user: { type: ['string', 'null'], maxLength: 300 },
      key: {
        anyOf: [
          { type: 'object', additionalProperties: false, required: ['kind'], properties: { kind: { const: 'agent' } } },
          {
            type: 'object',
            additionalProperties: false,
            required: ['kind', 'path'],
            properties: { kind: { const: 'file' }, path },
          },
        ],
      },
    },
  },
});
