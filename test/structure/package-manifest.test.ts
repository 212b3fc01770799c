import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { houseFiles, tell, type HouseFile } from './house-files.ts';
import {
  loosePins,
  undecidedScripts,
  unexplainedPackages,
  unknownCommands,
  unknownDocuments,
  unlockedPackages,
  wrongPackages,
  type LockedPackage,
  type Manifest,
} from './package-manifest.ts';

const files = houseFiles();

function textOf(path: string): string {
  const found = files.find((file) => file.path === path);
  assert.ok(found !== undefined, `${path} is there`);
  return found.text;
}

const isDocument = ({ path }: HouseFile): boolean => path.endsWith('.md');

suite('package.json of this checkout', () => {
  // The files are the repository's own; the fields are those that npm requires and the assertions below look into.
  const manifest = JSON.parse(textOf('package.json')) as Manifest;
  const lock = JSON.parse(textOf('package-lock.json')) as {
    readonly packages: Readonly<Record<string, LockedPackage>>;
  };

  test('pins every version', () => {
    assert.ok(Object.keys(manifest.dependencies).length > 0);
    assert.deepEqual(loosePins(manifest).map(tell), []);
  });

  test('declares what is imported, and nothing that is not', () => {
    assert.deepEqual(wrongPackages(manifest, files).map(tell), []);
  });

  test('decides which installation scripts run', () => {
    assert.equal(manifest.allowScripts['sqlite3'], true);
    assert.deepEqual(undecidedScripts(manifest, lock.packages).map(tell), []);
  });

  test('is locked whole, for every platform', () => {
    assert.ok(Object.keys(lock.packages).length > 100);
    assert.deepEqual(unlockedPackages(lock.packages).map(tell), []);
  });

  test('has every command that documents and messages name', () => {
    assert.ok(files.some(isDocument));
    assert.deepEqual(unknownCommands(manifest, files.filter(isNotPlanted)).map(tell), []);
  });

  test('has a reason for every dependency in ARCHITECTURE.md', () => {
    const architecture = { path: 'ARCHITECTURE.md', text: textOf('ARCHITECTURE.md') };
    assert.deepEqual(unexplainedPackages(manifest, architecture).map(tell), []);
  });
});

test('documents that files name are there', () => {
  assert.deepEqual(unknownDocuments(files).map(tell), []);
});

const isNotPlanted = ({ path }: HouseFile): boolean => path !== 'test/structure/package-manifest.test.ts';

suite('package rules see', () => {
  const manifest: Manifest = {
    scripts: { test: 'a', demo: 'b' },
    dependencies: { koffi: '3.3.4', '@grpc/grpc-js': '1.14.7' },
    devDependencies: { typescript: '5.9.3' },
    allowScripts: { koffi: true },
  };
  const at = (path: string, text: string): HouseFile => ({ path, text });
  const using = at('stage/a.ts', "import 'koffi'; import { Server } from '@grpc/grpc-js';");

  test('versions that are not pinned', () => {
    for (const version of ['^1.2.3', '~1.2.3', '1.2', '>=1.2.3', '*', 'latest', 'file:../a']) {
      assert.equal(loosePins({ ...manifest, dependencies: { a: version } }).length, 1, version);
    }
    assert.deepEqual(loosePins({ ...manifest, dependencies: { a: '1.2.3-beta.1' } }), []);
  });

  test('packages that are not declared, or for development only', () => {
    assert.deepEqual(wrongPackages(manifest, [using]), []);
    assert.equal(wrongPackages(manifest, [using, at('agent/a.ts', "import 'ajv/dist/core.js';")]).length, 1);
    assert.equal(wrongPackages(manifest, [using, at('agent/a.ts', "import 'typescript';")]).length, 1);
    for (const path of ['agent/a.test.ts', 'grafana/a.ts']) {
      assert.deepEqual(wrongPackages(manifest, [using, at(path, "import 'typescript';")]), []);
    }
  });

  test('packages that only tests use, or nobody', () => {
    const [first] = wrongPackages(manifest, [
      at('stage/a.ts', "import 'koffi';"),
      at('test/a.ts', "import '@grpc/grpc-js';"),
    ]);
    assert.equal(first?.says, 'nothing in production uses @grpc/grpc-js');
  });

  test('installation scripts nobody decided about', () => {
    const locked = {
      'node_modules/koffi': { hasInstallScript: true },
      'node_modules/a/node_modules/@b/c': { hasInstallScript: true },
    };
    assert.deepEqual(
      undecidedScripts(manifest, locked).map(({ says }) => says),
      ['allowScripts does not say whether @b/c may run its installation script'],
    );
    assert.equal(undecidedScripts(manifest, {}).length, 1);
  });

  test('packages that the lock file leaves out', () => {
    const packages = {
      '': { dependencies: { a: '1.0.0' } },
      'node_modules/a': { dependencies: { b: '1.0.0', '@c/d': '1.0.0' }, optionalDependencies: { 'a-mac': '1.0.0' } },
      'node_modules/a/node_modules/b': { dependencies: { '@c/d': '1.0.0', b2: '1.0.0' } },
      'node_modules/@c/d': {},
    };
    assert.deepEqual(
      unlockedPackages(packages).map(({ says }) => says),
      [
        'node_modules/a depends on a-mac, which is not locked',
        'node_modules/a/node_modules/b depends on b2, which is not locked',
      ],
    );
  });

  test('dependencies without a reason', () => {
    assert.equal(unexplainedPackages(manifest, at('ARCHITECTURE.md', 'koffi: foreign functions')).length, 1);
  });

  test('commands that are not there', () => {
    const told = (text: string): readonly string[] => unknownCommands(manifest, [at('README.md', text)]).map(tell);
    assert.deepEqual(told('`npm run fly -- x`'), [
      'README.md:1: names `npm run fly`, which package.json does not have',
    ]);
    assert.equal(told('npm run -s fly').length, 1);
    assert.deepEqual(told('npm ci && npm run demo -- --agents 2; npm test; npm run -s demo'), []);
  });

  test('documents that are not there', () => {
    const readme = at('README.md', 'See ARCHITECTURE.md and plans/MODEL.md.');
    assert.equal(unknownDocuments([readme]).length, 2);
    assert.deepEqual(unknownDocuments([readme, at('ARCHITECTURE.md', ''), at('plans/MODEL.md', '')]), []);
    assert.deepEqual(unknownDocuments([at('plans/a.ts', '// MODEL.md'), at('plans/MODEL.md', '')]), []);
  });
});
