import assert from 'node:assert/strict';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';

import { stateFolder } from './state-folder.ts';
import { isDefaultState } from './state-option.ts';

test('a folder that only an option or a variable names is not the default', () => {
  const at = { option: null, environment: {}, workingFolder: process.cwd() };
  assert.ok(isDefaultState(stateFolder(at)));
  assert.ok(isDefaultState(stateFolder({ ...at, option: join(process.cwd(), '.p4') })));
  assert.ok(!isDefaultState(stateFolder({ ...at, option: '/srv/p4' })));
  assert.ok(!isDefaultState(stateFolder({ ...at, environment: { P4_STATE: '/srv/p4' } })));
});
