import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, suite, test } from 'node:test';

const checkout = dirname(dirname(dirname(import.meta.dirname)));

/** As the checkout's, without Node's types: they are most of what the compiler would read. */
const settings = {
  compilerOptions: {
    target: 'es2023',
    lib: ['es2023'],
    module: 'nodenext',
    types: [],
    rootDir: '.',
    outDir: 'dist',
    incremental: true,
    tsBuildInfoFile: 'dist/.tsbuildinfo',
    sourceMap: true,
    strict: true,
  },
  include: ['protocol'],
};
const declaration = 'declare const console: { log(word: unknown): void };';

/** A project of one file, built by the real build.js and compiler. */
suite('a build', () => {
  const root = mkdtempSync(join(tmpdir(), 'p4-build-'));
  const main = join(root, 'protocol', 'main.ts');
  after(() => {
    rmSync(root, { recursive: true, force: true });
  });
  for (const name of ['build.js', 'package.json']) cpSync(join(checkout, name), join(root, name));
  writeFileSync(join(root, 'tsconfig.json'), JSON.stringify(settings));
  symlinkSync(join(checkout, 'node_modules'), join(root, 'node_modules'));
  mkdirSync(join(root, 'protocol'));

  const say = (word: string): void => {
    writeFileSync(main, `${declaration}\nconsole.log('${word}');\n`);
  };
  const node = (...words: readonly string[]): { status: number | null; stdout: string; stderr: string } =>
    spawnSync(process.execPath, words, { cwd: root, encoding: 'utf8' });
  const guarded = (): ReturnType<typeof node> => node('--import', './build.js', 'dist/protocol/main.js');

  test('is made before the first command runs, and not again', () => {
    say('one');
    const first = guarded();
    assert.equal(first.stdout, 'one\n', first.stderr);
    assert.match(first.stderr, /types and build/);
    const second = guarded();
    assert.deepEqual([second.status, second.stdout, second.stderr], [0, 'one\n', '']);
  });

  test('is made again after a source has changed, without what a removed source left', () => {
    writeFileSync(join(root, 'dist', 'protocol', 'gone.js'), '');
    say('two');
    // A pull may come within the clock's grain of the build.
    const later = Date.now() / 1000 + 2;
    utimesSync(main, later, later);
    assert.equal(guarded().stdout, 'two\n');
    assert.equal(existsSync(join(root, 'dist', 'protocol', 'gone.js')), false);
  });

  test('writes what is missing from dist/', () => {
    for (const words of [['build.js'], ['build.js', 'stale']]) {
      rmSync(join(root, 'dist', 'protocol', 'main.js'));
      assert.equal(node(...words).status, 0);
      assert.equal(guarded().stdout, 'two\n');
    }
  });

  test('is made where it is asked for when stale only if it is', () => {
    assert.doesNotMatch(node('build.js', 'stale').stderr, /types and build/);
    assert.match(node('build.js').stderr, /types and build/);
    const gone = join(root, 'dist', 'protocol', 'gone.js');
    writeFileSync(gone, '');
    assert.match(node('build.js', 'stale').stderr, /types and build/);
    assert.equal(existsSync(gone), false);
    say('four');
    const later = Date.now() / 1000 + 4;
    utimesSync(main, later, later);
    assert.match(node('build.js', 'stale').stderr, /types and build/);
    assert.equal(node('dist/protocol/main.js').stdout, 'four\n');
  });

  test('that fails runs nothing', () => {
    writeFileSync(main, `${declaration}\nconst word: number = 'three';\nconsole.log(word);\n`);
    for (const failed of [guarded(), node('build.js', 'stale')]) {
      assert.equal(failed.status, 1);
      assert.equal(failed.stdout, '');
      assert.match(failed.stderr, /TS2322[\s\S]*do not compile/);
    }
  });

  test('is not asked for in a copy without sources, nor in one without a compiler', () => {
    rmSync(join(root, 'node_modules'));
    const withoutCompiler = guarded();
    assert.equal(withoutCompiler.status, 0, withoutCompiler.stderr);
    assert.match(withoutCompiler.stderr, /no compiler/);
    assert.equal(node('build.js', 'prepare').status, 0);
    assert.equal(node('build.js').status, 1);
    rmSync(join(root, 'protocol'), { recursive: true });
    assert.deepEqual([guarded().status, guarded().stderr], [0, '']);
  });
});
