/** Who may do what on a host (G7): root, or the user whose state folder it is; files stay that user's. */
import { stat } from 'node:fs/promises';
import process from 'node:process';

import { P4Error } from '../../protocol/errors.ts';

/**
 * Becomes the owner of the state folder, where this is root: what is written there is then as if the agent had.
 *
 * Rejects with `HOST_RIGHTS_MISSING`, and `JOURNAL_MISSING` where there is no such folder.
 */
export async function becomeOwner(stateFolder: string): Promise<void> {
  const found = await stat(stateFolder).catch((cause: unknown) => {
    throw new P4Error('JOURNAL_MISSING', { folder: stateFolder }, cause);
  });
  const user = process.getuid?.() ?? 0;
  if (user === found.uid) return;
  if (user !== 0)
    throw new P4Error('HOST_RIGHTS_MISSING', { 'state folder': stateFolder, 'its owner': found.uid, user });
  process.setgroups?.([]);
  process.setgid?.(found.gid);
  process.setuid?.(found.uid);
}
