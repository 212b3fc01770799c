/** Reads an inventory file. */
import { readFile } from 'node:fs/promises';

import { P4Error } from '../../protocol/errors.ts';
import { faultsError } from '../../protocol/fault.ts';
import { parseInventory } from '../../protocol/inventory-document.ts';
import type { Inventory } from '../../protocol/inventory.ts';
import { systemCode } from '../../protocol/tls-identity.ts';

/**
 * @param path absolute
 * @throws INVENTORY_UNREADABLE, INVENTORY_INVALID with every fault
 */
export async function openInventory(path: string): Promise<Inventory> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new P4Error('INVENTORY_UNREADABLE', { file: path, why: systemCode(error) }, error);
  }
  const reading = parseInventory(text, path);
  if (reading.kind === 'faults') throw faultsError('INVENTORY_INVALID', reading.faults);
  return reading.inventory;
}
