/** The phases of a deployment, in the order they run. All hosts end one before any host begins the next. */
import { P4Error } from '../../protocol/errors.ts';
import type { Resource } from './resource.ts';

export const phaseNames = [
  'connect',
  'privileges',
  'lock',
  'facts',
  'release',
  'addresses',
  'accounts',
  'trial',
  'files',
  'services',
  'verify',
  'monitoring',
] as const;

export type PhaseName = (typeof phaseNames)[number];

export const phaseTexts: Readonly<Record<PhaseName, string>> = {
  connect: 'ssh to every host',
  privileges: 'become root',
  lock: 'one deployment at a time',
  facts: 'what each host is, and what is on it',
  release: 'send the release; nothing is switched yet',
  addresses: 'measure the networks, choose addresses',
  accounts: "p4's user, group and folders",
  trial: 'start the new agent beside the former one',
  files: 'certificates, configuration, units',
  services: 'switch to the release, restart what has to be',
  verify: 'every agent answers on its advertised address',
  monitoring: 'Prometheus and Grafana, on the monitoring host',
};

/** Without these nothing else can be done; `--tags` does not leave them out. */
const always: readonly PhaseName[] = ['connect', 'privileges', 'lock', 'facts'];

/**
 * @param option what `--tags` says: phases with commas between; `undefined` for all
 * @throws INVALID_ARGUMENT
 */
export function chosenPhases(option: string | undefined): ReadonlySet<PhaseName> {
  if (option === undefined) return new Set(phaseNames);
  const names = option.split(',').map((name) => name.trim());
  const chosen = names.map((name) => {
    const phase = phaseNames.find((known) => known === name);
    if (phase === undefined)
      throw new P4Error('INVALID_ARGUMENT', { option: '--tags', found: name, expected: phaseNames.join(', ') });
    return phase;
  });
  return new Set([...always, ...chosen]);
}

/** The phase that brings a resource about, where it belongs to the agent. */
export function agentPhaseOf(resource: Resource): PhaseName {
  switch (resource.kind) {
    case 'group':
    case 'user':
    case 'folder':
      return 'accounts';
    case 'release':
      return 'release';
    case 'file':
    case 'absent':
      return 'files';
    case 'link':
    case 'unit':
      return 'services';
    case 'package':
    case 'withdrawal':
      return 'monitoring';
  }
}
