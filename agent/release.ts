/** The release this process runs, as package.json names it. */
import { readFileSync } from 'node:fs';

export const release = readRelease();

function readRelease(): string {
  const file: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const version = typeof file === 'object' && file !== null && 'version' in file ? file.version : null;
  return typeof version === 'string' ? version : 'unknown';
}
