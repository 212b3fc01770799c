/** What deploy keeps on a host, piece by piece. Values only; `desired.ts` makes them, `difference.ts` compares them. */

export type Resource =
  | GroupResource
  | UserResource
  | FolderResource
  | FileResource
  | LinkResource
  | ReleaseResource
  | AbsentResource
  | UnitResource
  | PackageResource
  | WithdrawalResource;

export interface GroupResource {
  readonly kind: 'group';
  readonly name: string;
}

/** A system user that nobody logs in as. */
export interface UserResource {
  readonly kind: 'user';
  readonly name: string;
  readonly group: string;
  readonly shell: string;
}

export interface Ownership {
  readonly user: string;
  readonly group: string;
}

interface OwnedResource {
  /** Absolute. */
  readonly path: string;
  /** Permission bits. */
  readonly mode: number;
  readonly owner: Ownership;
}

export interface FolderResource extends OwnedResource {
  readonly kind: 'folder';
  /** Whether everything below belongs to the folder's owner, too. */
  readonly isOwnedThroughout: boolean;
}

export interface FileResource extends OwnedResource {
  readonly kind: 'file';
  readonly content: FileContent;
  /** Where a copy of somebody else's file goes that this one replaces; without it, none is kept. */
  readonly replaced?: ReplacedFile;
}

export interface ReplacedFile {
  /** Absolute. */
  readonly keptAt: string;
  /** What the first line of our own file begins with: that is never kept. */
  readonly ownMark: string;
}

export type FileContent =
  /** `isSecret`: never shown, not even as a difference. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly isSecret: boolean }
  /** Made in a run only, and different from whatever is there: a certificate that is not made yet, say. */
  | { readonly kind: 'made-in-run'; readonly why: string };

/** A symbolic link. */
export interface LinkResource {
  readonly kind: 'link';
  readonly path: string;
  readonly target: string;
}

/** A release's files, whole, below the folder of releases. */
export interface ReleaseResource {
  readonly kind: 'release';
  readonly id: string;
}

/** Something of an earlier release that is not wanted any more. */
export interface AbsentResource {
  readonly kind: 'absent';
  readonly path: string;
}

export interface UnitResource {
  readonly kind: 'unit';
  readonly name: string;
  /** `runs`: it is enabled and runs. `as-it-is`: somebody else's, which is only told of changes while it runs. */
  readonly activity: 'runs' | 'as-it-is';
  /** Names (`resourceName`) of what the unit's process reads when it starts: when one changes, it is restarted. */
  readonly readsAtStart: readonly string[];
  /** What it reads again without a restart, `null` for nothing. */
  readonly rereads: Rereading | null;
}

export interface Rereading {
  /** Names of what it reads again when systemd reloads it. */
  readonly names: readonly string[];
  /** Absolute path of a file whose time of change says when that was last done. */
  readonly mark: string;
}

/** A package of Debian's. */
export interface PackageResource {
  readonly kind: 'package';
  readonly name: string;
}

/** What a host has of a monitoring that is not wanted there any more. */
export interface WithdrawalResource {
  readonly kind: 'withdrawal';
  /** Paths; at least one. */
  readonly pieces: readonly string[];
}

export const resourceName = (resource: Resource): string => {
  switch (resource.kind) {
    case 'group':
    case 'user':
    case 'unit':
    case 'package':
      return resource.name;
    case 'release':
      return resource.id;
    case 'folder':
    case 'file':
    case 'link':
    case 'absent':
      return resource.path;
    case 'withdrawal':
      return resource.pieces.join(' ');
  }
};

/** Permission bits as people write them: `0640`. */
export const modeText = (mode: number): string => `0${mode.toString(8).padStart(3, '0')}`;
