/** Imported before a process's own main file: has the plants that `P4_PLANTS` names put into what that loads. */
import { register } from 'node:module';

import { plants } from './plants.ts';

const chosen = (process.env['P4_PLANTS'] ?? '').split(',');
const data = Object.entries(plants).flatMap(([name, mutation]) => (chosen.includes(name) ? [mutation] : []));
register('../simulation/mutation-hooks.js', { parentURL: import.meta.url, data });
