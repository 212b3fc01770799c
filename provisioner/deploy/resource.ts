/** What deploy keeps on a host, piece by piece. Values only; `desired.ts` makes them, `difference.ts` compares them. */

export type Resource =
  | GroupResource
  | UserResource
  | FolderResource
  | FileResource
  | LinkResource
  | ReleaseResource
  | AbsentResource
  | UnitResource;

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

/** A unit that is enabled and runs. */
export interface UnitResource {
  readonly kind: 'unit';
  readonly name: string;
  /** Names (`resourceName`) of what the unit's process reads when it starts: when one changes, it is restarted. */
  readonly readsAtStart: readonly string[];
}

export const resourceName = (resource: Resource): string => {
  switch (resource.kind) {
    case 'group':
    case 'user':
    case 'unit':
      return resource.name;
    case 'release':
      return resource.id;
    case 'folder':
    case 'file':
    case 'link':
    case 'absent':
      return resource.path;
  }
};

/** Permission bits as people write them: `0640`. */
export const modeText = (mode: number): string => `0${mode.toString(8).padStart(3, '0')}`;
