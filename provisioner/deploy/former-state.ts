/**
 * What a host had before it is switched: kept on the host until the new release has proved itself, and put back where it
 * does not.
 */
import type { Session } from '../ssh/session.ts';
import { shellQuoted, shellWords } from '../ssh/shell-quoting.ts';
import type { Change } from './difference.ts';
import { hostLayout } from '../host-layout.ts';
import { runHostScript } from '../ssh/host-script.ts';
import type { ActualState } from './actual.ts';

/** Paths whose contents the changes replace. */
export function replacedPaths(changes: readonly Change[]): readonly string[] {
  return changes.flatMap(({ resource, action }) => {
    const isReplaced = action.kind === 'write-file' || action.kind === 'link' || action.kind === 'delete';
    return isReplaced && 'path' in resource ? [resource.path] : [];
  });
}

/** Units that the changes touch, with what they did before. */
export interface FormerUnit {
  readonly name: string;
  readonly ran: boolean;
  readonly wasEnabled: boolean;
}

export const formerUnits = (changes: readonly Change[], actual: ActualState): readonly FormerUnit[] =>
  changes.flatMap(({ resource }) => {
    if (resource.kind !== 'unit') return [];
    const state = actual.units.get(resource.name);
    return [{ name: resource.name, ran: state?.activity === 'active', wasEnabled: state?.isEnabled === true }];
  });

export const keepScript = (paths: readonly string[]): string => `set -eu
rm -rf ${hostLayout.former}
mkdir -m 700 ${hostLayout.former}
keep() { if [ -e "$2" ] || [ -L "$2" ]; then cp -a "$2" "${hostLayout.former}/$1"; fi; }
${paths.map((path, index) => `keep ${index} ${shellQuoted(path)}`).join('\n')}
sync ${hostLayout.former}
`;

/** Each step is tried, whatever became of the one before: as much as can be is put back. */
export const putBackScript = (paths: readonly string[], units: readonly FormerUnit[]): string => `
[ -d ${hostLayout.former} ] || exit 0
back() {
  kept=${hostLayout.former}/$1
  if [ -e "$kept" ] || [ -L "$kept" ]; then cp -a "$kept" "$2.p4-new" && mv -fT "$2.p4-new" "$2"; else rm -f "$2"; fi
}
${units
  .filter(({ ran }) => !ran)
  .map(({ name }) => `systemctl stop ${shellQuoted(name)}`)
  .join('\n')}
${units
  .filter(({ wasEnabled }) => !wasEnabled)
  .map(({ name }) => `systemctl --quiet disable ${shellQuoted(name)}`)
  .join('\n')}
${paths.map((path, index) => `back ${index} ${shellQuoted(path)}`).join('\n')}
systemctl daemon-reload
${units.map(({ name }) => `systemctl reset-failed ${shellQuoted(name)} 2>/dev/null`).join('\n')}
status=0
${units
  .filter(({ ran }) => ran)
  .map(({ name }) => `systemctl restart ${shellQuoted(name)} || status=1`)
  .join('\n')}
rm -rf ${hostLayout.former}
exit $status
`;

export const forgetScript = `rm -rf ${hostLayout.former}`;

/** What a unit said last, for people; empty where nothing can be read. */
export async function unitWords(session: Session, unit: string): Promise<readonly string[]> {
  const script = `journalctl --no-pager -o cat -n ${wordLines} -u ${shellWords(unit)} 2>/dev/null || true`;
  const text = await runHostScript(session, 'read what the agent said', { script, timeoutMs: wordsMs }).catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

const wordLines = 12;
const wordsMs = 10_000;
