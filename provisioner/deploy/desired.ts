/**
 * What shall be on a host, as an ordered list of resources: pure, from the inventory's host, the release and what was
 * made for the host. The order is the one in which changes are made.
 */
import type { AgentConfig } from '../../protocol/agent-config.ts';
import type { InventoryHost } from '../../protocol/inventory.ts';
import type { NetAddress } from '../../protocol/net-address.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import {
  stageSupervision,
  startedUnits,
  unitFiles,
  unitFolders,
  type HostFile,
  type StagePrivileges,
  type UnitOptions,
} from '../units/unit-files.ts';
import { cudaDecision } from './cuda.ts';
import type { HostFacts } from './facts.ts';
import { currentTarget, hostLayout } from '../host-layout.ts';
import {
  resourceName,
  type AbsentResource,
  type FileContent,
  type FileResource,
  type FolderResource,
  type Ownership,
  type Resource,
  type UnitResource,
} from './resource.ts';

export interface DesiredHost {
  readonly host: InventoryHost;
  readonly facts: HostFacts;
  readonly releaseId: string;
  /** Where the agent listens, the advertised address first; `null` while it is still to be measured. */
  readonly listen: readonly NetAddress[] | null;
  /** `null` while there is no certificate for the host, which a run makes. */
  readonly identity: TlsIdentity | null;
  /** The fleet's list of revoked certificates, `null` for none. */
  readonly revoked: string | null;
}

const root: Ownership = { user: 'root', group: 'root' };
const agentsOwn: Ownership = { user: hostLayout.user, group: hostLayout.group };
const rootForAgent: Ownership = { user: 'root', group: hostLayout.group };

/** Enough for a million tokens, with room. */
const journalLimitBytes = 1024 ** 3;

export function desiredResources(desired: DesiredHost): readonly Resource[] {
  const { host, facts, releaseId } = desired;
  const privileges = privilegesOf(facts);
  const configuration = agentFiles(desired);
  const wanted = unitFiles(unitOptions(desired, privileges));
  return [
    { kind: 'group', name: hostLayout.group },
    { kind: 'user', name: hostLayout.user, group: hostLayout.group, shell: hostLayout.shell },
    ...folders(host),
    { kind: 'release', id: releaseId },
    ...configuration,
    ...absentPaths(desired, wanted).map((path): AbsentResource => ({ kind: 'absent', path })),
    ...wanted.map(unitFile),
    { kind: 'link', path: hostLayout.current, target: currentTarget(releaseId) },
    ...startedUnits(privileges).map((name): UnitResource => {
      const own = wanted.map(({ path }) => path).filter((path) => isOfUnit(path, name));
      const program = [releaseId, hostLayout.current, ...configuration.map(resourceName)];
      const readsAtStart = name === hostLayout.agentUnit ? [...own, ...program] : own;
      return { kind: 'unit', name, activity: 'runs', readsAtStart, rereads: null };
    }),
  ];
}

/** The unit's own file and its drop-ins. */
const isOfUnit = (path: string, unit: string): boolean =>
  path === `${hostLayout.units}/${unit}` || path.startsWith(`${hostLayout.units}/${unit}.d/`);

const privilegesOf = ({ hasPolkit }: HostFacts): StagePrivileges => (hasPolkit ? 'polkit' : 'request-folder');

function unitOptions({ host: { variables }, facts }: DesiredHost, privileges: StagePrivileges): UnitOptions {
  const { stateFolder, cpus, gpus, ports } = variables;
  const hasGpus = cudaDecision(facts.nvidia, gpus).kind === 'use';
  return { stateFolder, cpus, gpus, ports, hasGpus, privileges };
}

/** What a host with the other right to start stages has, and this one must not. */
function absentPaths(desired: DesiredHost, wanted: readonly HostFile[]): readonly string[] {
  const other = desired.facts.hasPolkit ? 'request-folder' : 'polkit';
  const paths = new Set(wanted.map(({ path }) => path));
  return unitFiles(unitOptions(desired, other))
    .map(({ path }) => path)
    .filter((path) => !paths.has(path));
}

export const slicesFolderOf = ({ variables }: InventoryHost): string => `${variables.stateFolder}/slices`;

const folder = (path: string, mode: number, owner: Ownership): FolderResource => ({
  ...{ kind: 'folder', path, mode, owner },
  isOwnedThroughout: false,
});

export const stateResource = ({ variables }: InventoryHost): FolderResource => ({
  ...folder(variables.stateFolder, 0o700, agentsOwn),
  isOwnedThroughout: true,
});

export const slicesResource = (host: InventoryHost): FolderResource => folder(slicesFolderOf(host), 0o700, agentsOwn);

function folders(host: InventoryHost): readonly FolderResource[] {
  return [
    folder(hostLayout.programs, 0o755, root),
    folder(hostLayout.releases, 0o755, root),
    folder(hostLayout.configuration, 0o755, root),
    folder(hostLayout.pki, 0o755, root),
    stateResource(host),
    slicesResource(host),
    ...unitFolders.map((path) => folder(path, 0o755, root)),
  ];
}

/** Configuration and certificates: all that the agent reads when it starts. */
function agentFiles({ host, facts, listen, identity, revoked }: DesiredHost): readonly FileResource[] {
  const config: FileContent =
    listen === null
      ? { kind: 'made-in-run', why: 'its address is measured in the run' }
      : textContent(agentConfigText(agentConfig(host, facts, { listen, hasRevoked: revoked !== null })));
  const certificates: FileContent = { kind: 'made-in-run', why: 'its certificate is made in the run' };
  const pem = (text: string | undefined, isSecret: boolean): FileContent =>
    text === undefined ? certificates : { kind: 'bytes', bytes: Buffer.from(text), isSecret };
  const file = (path: string, content: FileContent, own: Pick<FileResource, 'mode' | 'owner'>): FileResource => ({
    ...{ kind: 'file', path, content },
    ...own,
  });
  return [
    file(hostLayout.agentConfig, config, { mode: 0o640, owner: rootForAgent }),
    file(hostLayout.authority, pem(identity?.authority, false), { mode: 0o644, owner: root }),
    file(hostLayout.certificate, pem(identity?.certificate, false), { mode: 0o644, owner: root }),
    file(hostLayout.key, pem(identity?.key, true), { mode: 0o600, owner: agentsOwn }),
    ...(revoked === null ? [] : [file(hostLayout.revoked, pem(revoked, false), { mode: 0o644, owner: root })]),
  ];
}

const textContent = (text: string): FileContent => ({ kind: 'bytes', bytes: Buffer.from(text), isSecret: false });

export const agentConfigText = (config: AgentConfig): string => `${JSON.stringify(config, null, 2)}\n`;

export const agentConfig = (
  host: InventoryHost,
  facts: HostFacts,
  { listen, hasRevoked }: { readonly listen: readonly NetAddress[]; readonly hasRevoked: boolean },
): AgentConfig => ({
  host: host.name,
  listen: listen.map(({ address, port }) => ({ address, port })),
  stateFolder: host.variables.stateFolder,
  slicesFolder: slicesFolderOf(host),
  pki: {
    ...{ authority: hostLayout.authority, certificate: hostLayout.certificate, key: hostLayout.key },
    ...(hasRevoked ? { revoked: hostLayout.revoked } : {}),
  },
  journalLimitBytes,
  metrics: { port: host.variables.ports.metrics },
  endsWithInput: false,
  ...stageSupervision(privilegesOf(facts)),
});

const unitFile = ({ path, text, mode, owner, group }: HostFile): FileResource => ({
  ...{ kind: 'file', path, mode },
  owner: { user: owner, group },
  content: textContent(text),
});
