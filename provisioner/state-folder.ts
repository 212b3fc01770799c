/** Where the operator's state is: fleet, keys, generations. */
import { join, resolve } from 'node:path';

/** Absolute paths. All of it is for its owner only. */
export interface StateFolder {
  readonly root: string;
  /** One file per ring (`generation-file.ts`). */
  readonly generations: string;
  /** The fleet's authority and the certificates it signed (`pki.ts`). */
  readonly pki: string;
  /** The hosts (`fleet-file.ts`). */
  readonly fleetFile: string;
  /** Host keys that were accepted (`ssh/host-trust.ts`). */
  readonly knownHostsFile: string;
}

export interface StateFolderChoice {
  /** What the command line says (`--state`), `null` where it says nothing. */
  readonly option: string | null;
  /** `P4_STATE` is taken from it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absolute path that relative ones start from. */
  readonly workingFolder: string;
}

/** The option's folder, else the one of `P4_STATE`, else `.p4` in the working folder. */
export function stateFolder({ option, environment, workingFolder }: StateFolderChoice): StateFolder {
  const variable = environment['P4_STATE'];
  const chosen = option ?? (variable === undefined || variable === '' ? '.p4' : variable);
  const root = resolve(workingFolder, chosen);
  return {
    root,
    generations: join(root, 'generations'),
    pki: join(root, 'pki'),
    fleetFile: join(root, 'fleet.json'),
    knownHostsFile: join(root, 'known_hosts'),
  };
}
