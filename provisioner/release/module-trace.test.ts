import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { suite, test, type TestContext } from 'node:test';

import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';
import { specifiersIn, traceModules, type ModuleTrace } from './module-trace.ts';

/** @param files texts by path; objects are written as JSON */
function traced(
  context: TestContext,
  files: Readonly<Record<string, string | object>>,
): { files: string[]; trace: ModuleTrace } {
  const root = temporaryFolder(context);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), typeof content === 'string' ? content : JSON.stringify(content));
  }
  const trace = traceModules({ root, entries: [join(root, 'dist/main.js')], architecture: 'x64' });
  return { files: [...trace.files].map((file) => relative(root, file)).sort(), trace };
}

const own = { name: 'own', type: 'module', dependencies: { one: '1', native: '1' } };

suite('the files that a program runs', () => {
  test('are those it imports, and those that these import, by the rules of each kind', (context) => {
    const { files, trace } = traced(context, {
      'package.json': own,
      'dist/main.js': `import { a } from './a.js';\nnew Worker(new URL('./worker.js', import.meta.url));\nrequire('not meant');`,
      'dist/a.js': `export * from 'one';\nimport 'node:fs';\nconst late = await import('one/part');`,
      'dist/worker.js': '',
      'dist/not-imported.js': '',
      'node_modules/one/package.json': {
        name: 'one',
        exports: { '.': { import: './esm/index.mjs', require: './cjs.js' }, './part': './part.js' },
        dependencies: { two: '1', gone: '1' },
      },
      'node_modules/one/esm/index.mjs': `import two from 'two'; // or require('unlisted')`,
      'node_modules/one/cjs.js': '',
      'node_modules/one/part.js': `const t = require('two/deep'); try { require('gone') } catch {}; require('./folder')`,
      'node_modules/one/folder/index.js': '',
      'node_modules/one/node_modules/two/package.json': { name: 'two', main: 'lib/main' },
      'node_modules/one/node_modules/two/lib/main.js': '',
      'node_modules/one/node_modules/two/deep.js': '',
      'node_modules/two/package.json': { name: 'two' },
      'node_modules/two/index.js': '',
      'node_modules/unlisted/package.json': { name: 'unlisted' },
      'node_modules/unlisted/index.js': '',
    });
    assert.deepEqual(trace.missing, []);
    assert.deepEqual(files, [
      'dist/a.js',
      'dist/main.js',
      'dist/worker.js',
      'node_modules/one/esm/index.mjs',
      'node_modules/one/folder/index.js',
      'node_modules/one/node_modules/two/deep.js',
      'node_modules/one/node_modules/two/lib/main.js',
      'node_modules/one/node_modules/two/package.json',
      'node_modules/one/package.json',
      'node_modules/one/part.js',
      'package.json',
    ]);
  });

  test('leave out packages for other machines', (context) => {
    const platform = (cpu: string, libc: string): object => ({
      os: ['linux'],
      cpu: [cpu],
      libc: [libc],
      main: 'x.node',
    });
    const { files } = traced(context, {
      'package.json': own,
      'dist/main.js': `import 'native';`,
      'node_modules/native/package.json': { optionalDependencies: { 'n-x64': '1', 'n-arm64': '1', 'n-musl': '1' } },
      'node_modules/native/index.js': `require('n-x64'); require('n-arm64'); require('n-musl');`,
      'node_modules/n-x64/package.json': platform('x64', 'glibc'),
      'node_modules/n-x64/x.node': '',
      'node_modules/n-arm64/package.json': platform('arm64', 'glibc'),
      'node_modules/n-arm64/x.node': '',
      'node_modules/n-musl/package.json': platform('x64', 'musl'),
      'node_modules/n-musl/x.node': '',
    });
    assert.deepEqual(
      files.filter((file) => file.endsWith('.node')),
      ['node_modules/n-x64/x.node'],
    );
  });

  test('of its own that are not there are told', (context) => {
    const { trace } = traced(context, { 'package.json': own, 'dist/main.js': `import 'one';\nimport './gone.js';` });
    assert.deepEqual(trace.missing, ['one (imported by dist/main.js)', './gone.js (imported by dist/main.js)']);
  });

  test('are found in every form of import', () => {
    const text = `import a from "a"; import{b}from'b'; export * from '@c/d/e.js'; import('f'); __require("g"); require ('no')`;
    assert.deepEqual(specifiersIn(text, 'all'), ['a', 'b', '@c/d/e.js', 'f', 'g']);
    assert.deepEqual(specifiersIn(`require('x')`, 'import'), []);
  });
});
