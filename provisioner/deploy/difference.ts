/**
 * What has to change on a host for it to be as desired: desired and actual state in, changes out, in the order in which
 * they are to be made. `--check` prints just these, and a run makes just these.
 */
import { createTwoFilesPatch } from 'diff';
import { createHash } from 'node:crypto';

import { present } from '../../protocol/assert.ts';
import type { ActualState, PathOwnership, PathState, UnitState } from './actual.ts';
import { hostLayout } from '../host-layout.ts';
import type { PhaseName } from './phase.ts';
import {
  modeText,
  resourceName,
  type FileContent,
  type FileResource,
  type FolderResource,
  type LinkResource,
  type Ownership,
  type Resource,
  type UnitResource,
  type UserResource,
} from './resource.ts';

export interface Change {
  readonly resource: Resource;
  readonly phase: PhaseName;
  readonly action: Action;
  /** One line: what is done. */
  readonly text: string;
  /** A unified difference of a text that may be shown, `null` for anything else. */
  readonly difference: string | null;
}

export type Action =
  | { readonly kind: 'create-group'; readonly gid: number | null }
  | { readonly kind: 'create-user'; readonly uid: number | null }
  | { readonly kind: 'alter-user' }
  | { readonly kind: 'make-folder' }
  | { readonly kind: 'write-file' }
  /** Mode, owner and group alone. */
  | { readonly kind: 'own' }
  | { readonly kind: 'send-release' }
  | { readonly kind: 'link' }
  | { readonly kind: 'delete' }
  | { readonly kind: 'install' }
  | { readonly kind: 'withdraw' }
  | { readonly kind: 'unit'; readonly steps: readonly UnitStep[] };

/** `reload`: systemd reads unit files anew. `reread`: the unit's process reads its configuration anew. */
export type UnitStep = 'reload' | 'enable' | 'start' | 'restart' | 'reread';

/** Whether a release is on the host, whole: what sends it knows. */
export type ReleaseState = 'whole' | 'absent' | 'damaged';

export interface Comparison {
  readonly desired: readonly Resource[];
  readonly actual: ActualState;
  readonly release: ReleaseState;
  /** The phase that brings a resource about. */
  readonly phaseOf: (resource: Resource) => PhaseName;
}

export function changesOf(comparison: Comparison): readonly Change[] {
  const lost = lostIds(comparison);
  const found: Change[] = [];
  for (const resource of comparison.desired) {
    const difference = differenceOf(resource, { ...comparison, lost, before: found });
    if (difference !== null) found.push({ resource, phase: comparison.phaseOf(resource), ...difference });
  }
  return found;
}

/** Whether a change makes a process that reads the resource at its start outdated. */
const isOfContent = ({ action }: Change): boolean =>
  action.kind === 'write-file' ||
  action.kind === 'link' ||
  action.kind === 'send-release' ||
  action.kind === 'delete' ||
  action.kind === 'install';

interface Surroundings extends Comparison {
  readonly lost: LostIds;
  /** Changes of resources that come earlier. */
  readonly before: readonly Change[];
}

type Difference = Pick<Change, 'action' | 'text' | 'difference'>;

const difference = (action: Action, text: string, shown: string | null = null): Difference => ({
  action,
  text,
  difference: shown,
});

function differenceOf(resource: Resource, around: Surroundings): Difference | null {
  const { actual, lost } = around;
  switch (resource.kind) {
    case 'group':
      if (stateIn(actual.groups, resource.name) !== null) return null;
      return difference({ kind: 'create-group', gid: lost.gid }, `create group ${resource.name}`);
    case 'user':
      return userDifference(resource, around);
    case 'folder':
      return folderDifference(resource, around);
    case 'file':
      return fileDifference(resource, around);
    case 'link':
      return linkDifference(resource, stateIn(actual.paths, resource.path));
    case 'absent':
      if (stateIn(actual.paths, resource.path).kind === 'absent') return null;
      return difference({ kind: 'delete' }, `delete ${resource.path}`);
    case 'release':
      if (around.release === 'whole') return null;
      return difference(
        { kind: 'send-release' },
        around.release === 'absent' ? `send release ${resource.id}` : `mend release ${resource.id}`,
      );
    case 'unit':
      return unitDifference(resource, around);
    case 'package':
      if (stateIn(actual.packages, resource.name).isInstalled) return null;
      return difference({ kind: 'install' }, `install the package ${resource.name}`);
    case 'withdrawal':
      return difference({ kind: 'withdraw' }, `take its monitoring away: ${resource.pieces.join(', ')}`);
  }
}

const stateIn = <State>(states: ReadonlyMap<string, State>, name: string): State => {
  const state = states.get(name);
  return state === undefined ? present(state, `the host was asked for ${name}`) : state;
};

/** The numbers that files on the host still have of a user and a group that are gone: they get the same again. */
interface LostIds {
  readonly uid: number | null;
  readonly gid: number | null;
}

function lostIds({ desired, actual }: Comparison): LostIds {
  const paths = desired.flatMap((resource) => {
    if (resource.kind !== 'folder' && resource.kind !== 'file') return [];
    const state = actual.paths.get(resource.path);
    return state?.kind === 'folder' || state?.kind === 'file' ? [{ owner: resource.owner, state }] : [];
  });
  const users = paths.find(({ owner, state }) => actual.users.get(owner.user) === null && state.user === 'UNKNOWN');
  const groups = paths.find(({ owner, state }) => actual.groups.get(owner.group) === null && state.group === 'UNKNOWN');
  return { uid: users?.state.uid ?? null, gid: groups?.state.gid ?? null };
}

function userDifference(resource: UserResource, { actual, lost }: Surroundings): Difference | null {
  const state = stateIn(actual.users, resource.name);
  if (state === null) return difference({ kind: 'create-user', uid: lost.uid }, `create user ${resource.name}`);
  const group = stateIn(actual.groups, resource.group);
  const gid = group === null ? lost.gid : group.gid;
  const wrong = [
    ...(state.gid === gid ? [] : [`group ${resource.group}`]),
    ...(state.shell === resource.shell ? [] : [`shell ${state.shell} -> ${resource.shell}`]),
  ];
  return wrong.length === 0 ? null : difference({ kind: 'alter-user' }, `user ${resource.name}: ${wrong.join(', ')}`);
}

function folderDifference(resource: FolderResource, around: Surroundings): Difference | null {
  const state = stateIn(around.actual.paths, resource.path);
  if (state.kind !== 'folder') return difference({ kind: 'make-folder' }, `create folder ${resource.path}`);
  const wrong = ownershipFaults(resource, state, around);
  const strangers = resource.isOwnedThroughout && state.hasStrangers ? ['owners of what is in it'] : [];
  const all = [...wrong, ...strangers];
  return all.length === 0 ? null : difference({ kind: 'own' }, `${resource.path}: ${all.join(', ')}`);
}

function fileDifference(resource: FileResource, around: Surroundings): Difference | null {
  const state = stateIn(around.actual.paths, resource.path);
  const verb = state.kind === 'absent' ? 'create' : 'change';
  if (state.kind !== 'file' || !hasContent(state.sha256, resource.content)) {
    return difference({ kind: 'write-file' }, `${verb} ${resource.path}`, shownDifference(resource, state));
  }
  const wrong = ownershipFaults(resource, state, around);
  return wrong.length === 0 ? null : difference({ kind: 'own' }, `${resource.path}: ${wrong.join(', ')}`);
}

const hasContent = (sha256: string, content: FileContent): boolean =>
  content.kind === 'bytes' && createHash('sha256').update(content.bytes).digest('hex') === sha256;

function shownDifference({ path, content }: FileResource, state: PathState): string | null {
  if (content.kind !== 'bytes' || content.isSecret) return null;
  const before = state.kind === 'file' ? state.text : '';
  if (before === null) return null;
  const after = Buffer.from(content.bytes).toString('utf8');
  return createTwoFilesPatch(state.kind === 'file' ? path : '/dev/null', path, before, after, '', '', { context: 3 });
}

function linkDifference({ path, target }: LinkResource, state: PathState): Difference | null {
  if (state.kind === 'link' && state.target === target) return null;
  const before = state.kind === 'link' ? `${state.target} -> ` : '';
  return difference({ kind: 'link' }, `link ${path}: ${before}${target}`);
}

/** Mode, owner and group that are not as they should be. */
function ownershipFaults(
  { mode, owner }: { readonly mode: number; readonly owner: Ownership },
  state: PathOwnership,
  around: Surroundings,
): readonly string[] {
  return [
    ...(state.mode === mode ? [] : [`mode ${modeText(state.mode)} -> ${modeText(mode)}`]),
    ...(isOwner(owner, state, around) ? [] : [`owner ${state.user} -> ${owner.user}`]),
    ...(isGroup(owner, state, around) ? [] : [`group ${state.group} -> ${owner.group}`]),
  ];
}

/** A user that is gone and comes back with its number owns what it owned. */
const isOwner = ({ user }: Ownership, state: PathOwnership, { actual, lost }: Surroundings): boolean =>
  state.user === user || (actual.users.get(user) === null && state.uid === lost.uid);

const isGroup = ({ group }: Ownership, state: PathOwnership, { actual, lost }: Surroundings): boolean =>
  state.group === group || (actual.groups.get(group) === null && state.gid === lost.gid);

function unitDifference(resource: UnitResource, around: Surroundings): Difference | null {
  const state = stateIn(around.actual.units, resource.name);
  const steps = unitSteps(resource, state, around);
  if (steps.length === 0) return null;
  const words: Readonly<Record<UnitStep, string>> = {
    reload: 'have systemd read unit files',
    enable: 'enable',
    start: 'start',
    restart: 'restart',
    reread: 'have it read its configuration',
  };
  return difference({ kind: 'unit', steps }, `${resource.name}: ${steps.map((step) => words[step]).join(', ')}`);
}

function unitSteps(resource: UnitResource, state: UnitState, around: Surroundings): readonly UnitStep[] {
  const { before } = around;
  // What is done for somebody else's unit is done for that alone.
  const unitFiles = resource.activity === 'runs' ? unitFolder : `${unitFolder}${resource.name}`;
  const isFileChanged = before.some(
    (change) => isOfContent(change) && resourceName(change.resource).startsWith(unitFiles),
  );
  const reload = isFileChanged || state.needsReload ? (['reload'] as const) : [];
  const isRunning = state.activity === 'active';
  const isOutdated = isRead(resource.readsAtStart, state.startedAt, around);
  const isRestarted = isRunning && isOutdated;
  const again: readonly UnitStep[] = isRestarted ? ['restart'] : isRunning ? rereadSteps(resource, state, around) : [];
  if (resource.activity === 'as-it-is') return isRunning ? [...reload, ...again] : [];
  // An installation starts it before it has what it shall read.
  const isStartedBefore = before.some(({ action }) => action.kind === 'install');
  return [
    ...(state.isKnown ? reload : (['reload'] as const)),
    ...(state.isEnabled ? [] : (['enable'] as const)),
    ...(isRunning ? again : ([isStartedBefore ? 'restart' : 'start'] as const)),
  ];
}

function rereadSteps({ rereads }: UnitResource, state: UnitState, around: Surroundings): readonly UnitStep[] {
  if (rereads === null) return [];
  return isRead(rereads.names, Math.max(state.startedAt, state.rereadAt), around) ? ['reread'] : [];
}

/** Whether what was read has changed since: by a change that comes before, or by a run that was cut off. */
const isRead = (names: readonly string[], readAt: number, { before, actual }: Surroundings): boolean =>
  before.some((change) => isOfContent(change) && names.includes(resourceName(change.resource))) ||
  names.some((name) => isNewer(actual.paths.get(name), readAt));

/** Unit files stand here; a change to any of them wants a reload. */
const unitFolder = `${hostLayout.units}/`;

/** Changed since: by a run that did not get as far as the restart, or by somebody else. */
const isNewer = (state: PathState | undefined, readAt: number): boolean =>
  (state?.kind === 'file' || state?.kind === 'link') && readAt > 0 && state.changedAt > readAt;
