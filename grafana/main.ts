/** `npm run grafana`: builds rules and dashboards into the files that are committed. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { builtFiles } from './built-files.ts';

/** This file is built to `dist/grafana/`. */
const folder = join(import.meta.dirname, '../../grafana');

for (const [path, text] of Object.entries(builtFiles())) writeFileSync(join(folder, path), text);
