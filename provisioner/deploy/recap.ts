/** What a deployment came to, host by host, in Ansible's words. */
import type { HostName } from '../../protocol/ids.ts';

export interface Recap {
  readonly host: HostName;
  /** Pieces that were as they should be, or are now. */
  readonly ok: number;
  /** Of those: that were changed; with `--check`, that would be. */
  readonly changed: number;
  readonly unreachable: 0 | 1;
  readonly failed: number;
  /** Pieces that were not looked at or not changed, because of `--tags` or because some host was not ready. */
  readonly skipped: number;
}

/** A check that would be refused must not look like success. */
export function recapHeading(recaps: readonly Recap[], isCheck: boolean): string {
  if (!isCheck) return 'RECAP';
  const isRefused = recaps.some(({ failed, unreachable }) => failed + unreachable > 0);
  const verdict = isRefused ? 'a run would end as told above' : 'a run would change what is counted as changed';
  return `RECAP       a check: nothing was changed; ${verdict}`;
}

export const recapLines = (recaps: readonly Recap[]): readonly string[] => {
  const width = Math.max(0, ...recaps.map(({ host }) => host.length));
  return recaps.map(({ host, ok, changed, unreachable, failed, skipped }) =>
    [
      host.padEnd(width),
      `ok=${ok}`.padEnd(7),
      `changed=${changed}`.padEnd(11),
      `unreachable=${unreachable}`,
      `failed=${failed}`,
      `skipped=${skipped}`,
    ].join('  '),
  );
};
