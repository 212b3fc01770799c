/**
 * Finds test sources. Sources are listed, not outputs: a test whose build is missing is a failure instead of a silence,
 * and what an earlier build left behind does not run.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Paths of `*.test.ts`, relative to the checkout, sorted. */
export function testSources(root: string): readonly string[] {
  return sourceFolders(root)
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
    )
    .filter((path) => path.endsWith('.test.ts'))
    .sort();
}

/** The folders that are built. */
function sourceFolders(root: string): readonly string[] {
  const settings: unknown = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
  const isObject = typeof settings === 'object' && settings !== null;
  const folders: unknown = isObject && 'include' in settings ? settings.include : undefined;
  if (!Array.isArray(folders)) throw new Error('tsconfig.json includes no folders');
  return folders.filter((folder) => typeof folder === 'string');
}

/** Where the build puts a source. */
export const builtPath = (root: string, source: string): string => join(root, 'dist', source.replace(/\.ts$/, '.js'));
