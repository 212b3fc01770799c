/** A state folder with somebody else's files is neither taken over nor removed. */
import { P4Error } from '../../protocol/errors.ts';
import type { InventoryHost } from '../../protocol/inventory.ts';
import type { ActualState } from './actual.ts';
import { slicesFolderOf } from './desired.ts';
import { hostLayout } from '../host-layout.ts';

/** @throws STATE_FOLDER_FOREIGN */
export function refuseForeignState(host: InventoryHost, { paths }: ActualState): void {
  const { stateFolder } = host.variables;
  const state = paths.get(stateFolder);
  if (state?.kind !== 'folder' || state.isEmpty || state.user === hostLayout.user) return;
  // The slices' folder is ours alone: what has it was ours before its owner was changed.
  if (paths.get(slicesFolderOf(host))?.kind === 'folder') return;
  throw new P4Error('STATE_FOLDER_FOREIGN', { host: host.name, folder: stateFolder, owner: state.user });
}
