/** The rules, read and tried by Prometheus' own tool. No ring runs: every series is written down in the tests. */
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { suite, test } from 'node:test';

import { ruleFiles } from '../../grafana/rules/rule-groups.ts';
import { scaledWindows } from '../../grafana/windows.ts';
import { temporaryFolder } from '../fixture/temporary-folder.ts';
import { promtool } from './promtool.ts';

/** This file is built to `dist/test/grafana/`. */
const rulesFolder = join(dirname(dirname(dirname(import.meta.dirname))), 'grafana/rules');
const filesIn = (folder: string): readonly string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.yml'))
    .map((name) => join(folder, name));

suite('rules', () => {
  test('are sound, as built and with windows of a proof', async (t) => {
    const built = filesIn(rulesFolder);
    assert.ok(built.length > 0);
    assert.match(await promtool('check', 'rules', ...built), /rules found/);
    const folder = temporaryFolder(t);
    for (const [name, text] of Object.entries(ruleFiles(scaledWindows(120, 1))))
      writeFileSync(join(folder, name), text);
    await promtool('check', 'rules', ...filesIn(folder));
  });

  const tests = filesIn(join(rulesFolder, 'tests'));
  assert.ok(tests.length > 0);
  for (const path of tests) {
    test(`do what ${path.slice(path.lastIndexOf('/') + 1)} says`, async () => {
      assert.match(await promtool('test', 'rules', path), /SUCCESS/);
    });
  }
});
