import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { mutated } from '../simulation/mutation-hooks.ts';
import { plants } from './plants.ts';

/** Of the build. */
const root = join(import.meta.dirname, '../..');

for (const plant of Object.values(plants)) {
  test(`there is a place for it: ${plant.name}`, () => {
    // Fails unless its guard stands there exactly once.
    mutated(readFileSync(join(root, plant.file), 'utf8'), plant);
  });
}
