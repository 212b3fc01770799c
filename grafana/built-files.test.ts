import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { builtFiles } from './built-files.ts';

/** This file is built to `dist/grafana/`. */
const folder = join(import.meta.dirname, '../../grafana');

suite('what is built from grafana/', () => {
  const files = builtFiles();

  test('is what is committed; `npm run grafana` makes it so', () => {
    for (const [path, text] of Object.entries(files)) {
      assert.equal(readFileSync(join(folder, path), 'utf8'), text, path);
    }
  });

  test('is all that lies there', () => {
    const lying = ['rules', 'dashboards'].flatMap((name) =>
      readdirSync(join(folder, name))
        .filter((file) => /\.(json|yml)$/.test(file))
        .map((file) => `${name}/${file}`),
    );
    assert.deepEqual(lying.sort(), Object.keys(files).sort());
  });
});
