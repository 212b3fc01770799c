/** What is not as a release has it, on a host: decided from what `host-store.ts` saw. */
import type { HostStore, StoreEntry } from './host-store.ts';
import { fixedTimeSeconds } from './host-store.ts';
import type { Release, ReleaseFile } from './release.ts';

export interface ReleaseDrift {
  /** Below the release's folder; `.` is the folder itself. */
  readonly path: string;
  readonly how: 'missing' | 'extra' | 'content' | 'mode' | 'owner';
}

/** Permission bits of every folder of a release. */
export const folderMode = 0o755;

/**
 * Ordered by path; empty where the release is there as it should be. Everything is missing where it is not there.
 *
 * A file has to be a link to its object, where that is there: another file of the same size and time is found out.
 */
export function releaseDrifts(release: Release, { tree, owner, objects }: HostStore): readonly ReleaseDrift[] {
  const found = new Map(tree.map((entry) => [entry.path, entry]));
  const inodes = new Map(objects.map(({ path, inode }) => [path, inode]));
  const files = new Map(release.files.map((file) => [file.path, file]));
  const folders = new Set(foldersOf(release));
  const drifts: ReleaseDrift[] = [];
  for (const file of release.files) {
    const entry = found.get(file.path);
    const isLink = entry === undefined || (inodes.get(file.sha256) ?? entry.inode) === entry.inode;
    const how = isLink ? fileDrift(file, entry, owner) : 'content';
    if (how !== null) drifts.push({ path: file.path, how });
  }
  for (const path of folders) {
    const how = folderDrift(found.get(path), owner);
    if (how !== null) drifts.push({ path, how });
  }
  for (const { path } of tree) {
    if (!files.has(path) && !folders.has(path)) drifts.push({ path, how: 'extra' });
  }
  return drifts.sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** Folders of a release, its own (`.`) included, each after the one it is in. */
export function foldersOf({ files }: Release): readonly string[] {
  const folders = new Set(['.']);
  for (const { path } of files) {
    const words = path.split('/');
    for (let depth = 1; depth < words.length; depth += 1) folders.add(words.slice(0, depth).join('/'));
  }
  return [...folders].sort();
}

export type ObjectState =
  | { readonly kind: 'sound' }
  /** Its content is sound: its mode or owner is not. */
  | { readonly kind: 'misfiled' }
  /** Its content may be sound, and has to be read. */
  | { readonly kind: 'touched' }
  | { readonly kind: 'absent' };

export function objectState(file: ReleaseFile, entry: StoreEntry | undefined, owner: string): ObjectState {
  if (entry?.kind !== 'file' || entry.bytes !== file.bytes) return { kind: 'absent' };
  if (entry.modifiedSeconds !== fixedTimeSeconds) return { kind: 'touched' };
  return entry.mode === file.mode && entry.owner === owner ? { kind: 'sound' } : { kind: 'misfiled' };
}

function fileDrift(file: ReleaseFile, entry: StoreEntry | undefined, owner: string): ReleaseDrift['how'] | null {
  if (entry === undefined) return 'missing';
  const isContentRight =
    entry.kind === 'file' && entry.bytes === file.bytes && entry.modifiedSeconds === fixedTimeSeconds;
  if (!isContentRight) return 'content';
  if (entry.mode !== file.mode) return 'mode';
  return entry.owner === owner ? null : 'owner';
}

function folderDrift(entry: StoreEntry | undefined, owner: string): ReleaseDrift['how'] | null {
  if (entry === undefined) return 'missing';
  if (entry.kind !== 'folder') return 'content';
  if (entry.mode !== folderMode) return 'mode';
  return entry.owner === owner ? null : 'owner';
}
