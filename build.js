/**
 * Builds `dist/` from the sources, and keeps it fresh.
 *
 * `node build.js` always builds, `node build.js stale` only when a source is newer than the last good build, removed or not
 * built; `node build.js prepare` (after an installation) builds when the compiler was installed.
 * `node --import ./build.js dist/…` builds first when a source is newer than the last good build (after a pull, say), and
 * costs a few milliseconds when none is. A deployed copy has `dist/` without sources or without a compiler: it runs as it
 * is. Plain JavaScript, because nothing is compiled yet when it runs.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';

const root = import.meta.dirname;
const dist = join(root, 'dist');
const project = join(root, 'tsconfig.json');
/** Written after a build without a fault; its time is what sources are compared with. */
const stamp = join(dist, '.built');

const [, script, when] = process.argv;
if (script !== import.meta.filename) {
  if (hasSources() && isStale()) buildWhenPossible();
} else if (when === 'prepare') buildWhenPossible();
else if (when !== 'stale' || isStale() || lacksOutputs() || orphans().length > 0) build();

function hasSources() {
  return existsSync(project) && existsSync(join(root, 'protocol'));
}

function isStale() {
  const builtAtMs = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs;
  if (builtAtMs === undefined) return true;
  const inputs = ['tsconfig.json', 'package.json', ...sources()];
  return inputs.some((path) => statSync(join(root, path)).mtimeMs > builtAtMs);
}

function lacksOutputs() {
  return sources().some((source) => !existsSync(output(source)));
}

/** What a removed or renamed source left behind would still run, and would still be found by an old import. */
function orphans() {
  return readdirSync(dist, { recursive: true }).filter((name) => {
    const source = name.replace(/\.js(\.map)?$/, '.ts');
    return source !== name && !existsSync(join(root, source));
  });
}

/** Paths relative to the root. */
function sources() {
  const folders = JSON.parse(readFileSync(project, 'utf8')).include.filter((folder) => existsSync(join(root, folder)));
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  );
}

function output(source) {
  return join(dist, source.replace(/\.ts$/, '.js'));
}

function buildWhenPossible() {
  if (compiler() !== null) build();
  else if (existsSync(dist))
    process.stderr.write('dist/ is older than the sources, and there is no compiler: running it as it is.\n');
  else fail('There is no dist/ and no compiler: run `npm ci` first.');
}

function build() {
  const path = compiler();
  if (path === null) return fail('There is no compiler: run `npm ci` first.');
  const startedAtMs = Date.now();
  // The compiler believes its notes, not the folder: without them it writes everything anew.
  if (lacksOutputs()) rmSync(join(dist, '.tsbuildinfo'), { force: true });
  const { status } = spawnSync(process.execPath, [path, '-p', project], { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) return fail('The sources do not compile.');
  for (const name of orphans()) rmSync(join(dist, name));
  writeFileSync(stamp, '');
  // The time before the compiler read the sources: a file saved while it ran is newer than the stamp.
  utimesSync(stamp, startedAtMs / 1000, startedAtMs / 1000);
  process.stderr.write(`types and build: ${((Date.now() - startedAtMs) / 1000).toFixed(1)} s\n`);
}

function compiler() {
  try {
    return createRequire(import.meta.url).resolve('typescript/lib/tsc.js');
  } catch {
    return null;
  }
}

function fail(reason) {
  process.stderr.write(`${reason}\n`);
  process.exit(1);
}
