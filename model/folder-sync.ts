/** Names that survive a power loss: a file that was made, renamed or removed is durable once its folder is. */
import { open } from 'node:fs/promises';

/** Makes the names in a folder durable. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
