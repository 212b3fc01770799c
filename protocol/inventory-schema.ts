/**
 * The shape of an inventory file, as JSON Schema.
 *
 * A description says what is expected of a part, in words that follow "expected".
 */
import { limits } from './limits.ts';
import { namePatternText, nameWords, plainTextPattern } from './plan-schema.ts';
import { compiledSchema } from './schema-fault.ts';

/** An inventory file's value, before anything is handed down to the hosts. */
export interface InventoryFile {
  readonly fleet?: SettingsFile;
  readonly groups?: Readonly<Record<string, SettingsFile | null>>;
  readonly hosts: Readonly<Record<string, HostFile>>;
  readonly monitoring?: string | { readonly host: string; readonly port?: number };
}

/** What can be said of the fleet, a group or a host. */
export interface SettingsFile {
  readonly port?: number;
  readonly user?: string;
  readonly key?: string;
  readonly become?: 'none' | 'sudo' | { readonly sudo: 'ask' | { readonly passwordFile: string } };
  readonly jump?: string | SshTargetFile;
  readonly variables?: VariablesFile;
}

export interface HostFile extends SettingsFile {
  readonly address: string;
  readonly groups?: readonly string[];
}

export interface SshTargetFile {
  readonly address: string;
  readonly port?: number;
  readonly user?: string;
  readonly key?: string;
}

export interface VariablesFile {
  readonly advertise?: 'measured' | { readonly address: string } | { readonly interface: string };
  readonly gpus?: 'all' | 'none' | readonly number[];
  readonly cpus?: string | number;
  readonly stateFolder?: string;
  readonly ports?: PortsFile;
}

export interface PortsFile {
  readonly agent?: number;
  readonly metrics?: number;
  readonly bridge?: number;
}

const port = { type: 'integer', minimum: 1, maximum: 65_535, description: 'a port, from 1 to 65535' };
/** Agent, metrics and bridge run without root's rights, and so open no port below. */
const listenerPort = {
  type: 'integer',
  minimum: 1024,
  maximum: 65_535,
  description: 'a port from 1024 to 65535: lower ones are open to root alone, and p4 does not run as root',
};
const address = { type: 'string', format: 'address', description: 'a DNS name or an IP address' };
const user = { type: 'string', pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$', description: "a user's name" };
const hostName = { type: 'string', pattern: namePatternText, description: `a host's name: ${nameWords}` };
const filePath = (description: string): object => ({
  type: 'string',
  pattern: plainTextPattern,
  maxLength: 4096,
  description,
});
const key = filePath("`agent` for the ssh agent, or a private key's path");

/** One of some words, or a mapping; with one description for both. */
const wordOr = (description: string, word: object, mapping: object): object => ({
  type: ['string', 'object'],
  description,
  if: { type: 'string' },
  then: { ...word, description },
  else: { type: 'object', description, additionalProperties: false, ...mapping },
});

const sudoWords = '`ask`, or { passwordFile: path }';
const become = wordOr(
  '`none`, `sudo`, or { sudo: ask } or { sudo: { passwordFile: path } } where it wants a password',
  { enum: ['none', 'sudo'] },
  {
    required: ['sudo'],
    properties: {
      sudo: wordOr(
        sudoWords,
        { enum: ['ask'] },
        { required: ['passwordFile'], properties: { passwordFile: filePath("a file's path") } },
      ),
    },
  },
);

const jump = wordOr(
  '`none`, the name of a host, or { address, port, user, key } of another machine',
  { pattern: namePatternText },
  { required: ['address'], properties: { address, port, user, key } },
);

const advertise = wordOr(
  '`measured`, { address: an IP address } or { interface: a name }',
  { enum: ['measured'] },
  {
    minProperties: 1,
    maxProperties: 1,
    properties: {
      address: { type: 'string', format: 'ip-address', description: 'an IP address' },
      interface: { type: 'string', pattern: '^[A-Za-z0-9._@-]{1,15}$', description: "a network interface's name" },
    },
  },
);

const gpuWords = '`all`, `none`, or a list of GPU indexes, each once';
const gpus = {
  type: ['string', 'array'],
  description: gpuWords,
  if: { type: 'string' },
  then: { enum: ['all', 'none'], description: gpuWords },
  else: {
    type: 'array',
    description: gpuWords,
    uniqueItems: true,
    maxItems: limits.hostGpus,
    items: {
      type: 'integer',
      minimum: 0,
      maximum: limits.hostGpus - 1,
      description: `a GPU's index, from 0 to ${limits.hostGpus - 1}`,
    },
  },
};

const variables = {
  type: 'object',
  description: 'a mapping of advertise, gpus, cpus, stateFolder and ports',
  additionalProperties: false,
  properties: {
    advertise,
    gpus,
    cpus: {
      type: ['string', 'integer'],
      pattern: '^(all|[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*)$',
      minimum: 0,
      maximum: 9999,
      description: '`all`, or CPUs in rising order as in 0-3,8',
    },
    stateFolder: {
      type: 'string',
      pattern: '^(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$',
      maxLength: 255,
      description: 'an absolute path of letters, digits, dots, dashes and underscores',
    },
    ports: {
      type: 'object',
      description: 'a mapping of agent, metrics and bridge',
      additionalProperties: false,
      properties: { agent: listenerPort, metrics: listenerPort, bridge: listenerPort },
    },
  },
};

const settings = { port, user, key, become, jump, variables };

const level = (type: string | readonly string[], description: string): object => ({
  type,
  description,
  additionalProperties: false,
  properties: settings,
});

const hosts = {
  type: 'object',
  description: `a mapping of 1 to ${limits.fleetHosts} hosts, by name`,
  minProperties: 1,
  maxProperties: limits.fleetHosts,
  propertyNames: hostName,
  additionalProperties: {
    type: 'object',
    description: 'a host: a mapping with at least its address',
    additionalProperties: false,
    required: ['address'],
    properties: {
      address,
      groups: {
        type: 'array',
        description: 'a list of group names, each once',
        uniqueItems: true,
        items: { type: 'string', description: "a group's name" },
      },
      ...settings,
    },
  },
};

const inventorySchema = {
  type: 'object',
  description: 'an inventory: a mapping of hosts, and of fleet, groups and monitoring where wanted',
  additionalProperties: false,
  required: ['hosts'],
  properties: {
    fleet: level('object', 'a mapping of what holds for every host'),
    groups: {
      type: 'object',
      description: 'a mapping of groups, by name',
      propertyNames: { type: 'string', pattern: namePatternText, description: `a group's name: ${nameWords}` },
      additionalProperties: level(['object', 'null'], 'a mapping of what holds for the hosts of the group'),
    },
    hosts,
    monitoring: wordOr(
      "a host's name, or { host: name, port: number }",
      { pattern: namePatternText },
      { required: ['host'], properties: { host: hostName, port } },
    ),
  },
};

export const checkInventoryFile = compiledSchema<InventoryFile>(inventorySchema);
