/** The shape of an agent's configuration file, as JSON Schema; descriptions follow "expected". */
import type { AgentConfig } from './agent-config.ts';
import { limits } from './limits.ts';
import { namePatternText, nameWords } from './plan-schema.ts';
import { compiledSchema } from './schema-fault.ts';

const path = (what: string): object => ({ type: 'string', pattern: '^/', description: `the absolute path of ${what}` });

const listenSchema = {
  type: 'object',
  description: 'an address and a port',
  additionalProperties: false,
  required: ['address', 'port'],
  properties: {
    address: { type: 'string', format: 'address', description: 'an IP address' },
    port: { type: 'integer', minimum: 0, maximum: 65535, description: 'a port from 0 to 65535' },
  },
};

const pkiSchema = {
  type: 'object',
  description: 'the files of the authority, the certificate and its key',
  additionalProperties: false,
  required: ['authority', 'certificate', 'key'],
  properties: {
    authority: path('the certificate of the fleet’s authority'),
    certificate: path('the certificate of this host'),
    key: path('the key of that certificate'),
    revoked: path('the list of revoked certificates'),
  },
};

const metricsSchema = {
  type: 'object',
  description: 'the port of the metrics',
  additionalProperties: false,
  required: ['port'],
  properties: { port: { type: 'integer', minimum: 0, maximum: 65535, description: 'a port from 0 to 65535' } },
};

const privilegesWords = '{ kind: polkit } or { kind: request-folder, folder: path }';

const stageUnitsSchema = {
  type: 'object',
  description: 'the template of stage units and the right to start them',
  additionalProperties: false,
  required: ['template', 'privileges'],
  properties: {
    template: { type: 'string', pattern: '^[a-z0-9][a-z0-9-]{0,62}$', description: 'the name of a template unit' },
    privileges: {
      type: 'object',
      description: privilegesWords,
      additionalProperties: false,
      required: ['kind'],
      properties: {
        kind: { enum: ['polkit', 'request-folder'], description: 'polkit or request-folder' },
        folder: path('the folder for requests'),
      },
      if: { properties: { kind: { const: 'request-folder' } } },
      then: { required: ['folder'], properties: { folder: { description: 'the folder for requests' } } },
    },
  },
};

const configSchema = {
  type: 'object',
  description: 'a mapping with the keys of an agent’s configuration',
  additionalProperties: false,
  required: [
    'host',
    'listen',
    'stateFolder',
    'slicesFolder',
    'runtimeFolder',
    'pki',
    'journalLimitBytes',
    'stages',
    'endsWithInput',
  ],
  properties: {
    host: { type: 'string', pattern: namePatternText, description: `a host's name: ${nameWords}` },
    listen: { type: 'array', minItems: 1, items: listenSchema, description: 'a list of addresses and ports' },
    stateFolder: path('the folder that holds the journal'),
    slicesFolder: path('the folder that holds slices'),
    runtimeFolder: path('the folder for sockets'),
    pki: pkiSchema,
    journalLimitBytes: {
      type: 'integer',
      minimum: limits.journalLeastBytes,
      description: `a size in bytes, at least ${limits.journalLeastBytes}`,
    },
    metrics: metricsSchema,
    stages: { enum: ['child-processes', 'systemd'], description: 'how stages start: child-processes or systemd' },
    stageUnits: stageUnitsSchema,
    endsWithInput: { type: 'boolean', description: 'true or false' },
  },
  if: { properties: { stages: { const: 'systemd' } } },
  then: { required: ['stageUnits'], properties: { stageUnits: { description: stageUnitsSchema.description } } },
};

export const checkAgentConfig = compiledSchema<AgentConfig>(configSchema);
