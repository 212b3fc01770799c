/** Where the generation of a ring is written down. */
import { join } from 'node:path';

import type { RingName } from '../protocol/ids.ts';
import type { StateFolder } from './state-folder.ts';

export const generationPath = (folder: StateFolder, ring: RingName): string => join(folder.generations, `${ring}.json`);
