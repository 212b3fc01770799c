import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { FileHashes } from './file-hashes.ts';
import { readElf } from './elf-file.ts';
import { assembleRelease, type AssemblyOrder } from './release-assembly.ts';
import { releaseBytes, releaseParts, withoutLibraries } from './release.ts';

const root = join(import.meta.dirname, '../../..');
const architecture = process.arch === 'arm64' ? 'arm64' : 'x64';
const order = (): AssemblyOrder => ({ root, target: { architecture }, gpu: 'none', hashes: FileHashes.forgetful() });

suite('a release', () => {
  test('is the same for the same inputs, and small', async () => {
    const [one, other] = [await assembleRelease(order()), await assembleRelease(order())];
    assert.match(one.id, /^[0-9a-f]{16}$/);
    assert.equal(one.id, other.id);
    const [largest] = releaseParts(one);
    assert.equal(largest?.name, 'runtime');
    assert.ok(releaseBytes(one) - largest.bytes < 45_000_000, `${releaseBytes(one)} bytes`);
    assert.ok(one.files.length < 800, `${one.files.length} files`);
  });

  test('has what runs on a host and nothing else', async () => {
    const { files } = await assembleRelease(order());
    const paths = files.map(({ path }) => path);
    for (const wanted of [
      'runtime/bin/node',
      'dist/agent/main.js',
      'dist/stage/main.js',
      'dist/stage/compute-thread.js',
      'package.json',
      'protocol/p4.proto',
    ])
      assert.ok(paths.includes(wanted), wanted);
    const unwanted =
      /\.(ts|map|md|test\.js)$|^dist\/(test|provisioner)\/|-fixture\.js$|node_modules\/(typescript|eslint|ssh2)\/|darwin|win32|musl/;
    assert.deepEqual(
      paths.filter((path) => unwanted.test(path)),
      [],
    );
    const executables = files.filter(({ mode }) => mode === 0o755).map(({ path }) => path);
    assert.deepEqual(executables, ['runtime/bin/node', 'runtime/bin/node-program']);
  });

  test('has no program that loads others by names made at run time, but those that were looked at', async () => {
    const { files } = await assembleRelease(order());
    const dynamic = files.filter(
      ({ path, source }) =>
        path.startsWith('node_modules/') &&
        path.endsWith('js') &&
        source.kind === 'file' &&
        /(?<![.\w])(require|import)\((?!\s*['"`])[\w.[\]]+\)/.test(withoutComments(readFileSync(source.path, 'utf8'))),
    );
    // What these load is added by native-parts.ts, or is not run: node-llama-cpp is there to be found.
    const known = /^node_modules\/(@koromix\/koffi-|koffi\/|@node-rs\/crc32\/|bindings\/|node-llama-cpp\/)/;
    assert.deepEqual(
      dynamic.map(({ path }) => path).filter((path) => !known.test(path)),
      [],
    );
  });

  test('brings every library that its programs want, glibc apart', async () => {
    const release = await assembleRelease(order());
    const names = new Set(release.files.map(({ path }) => path.slice(path.lastIndexOf('/') + 1)));
    const wanted = release.files.flatMap(({ source }) =>
      source.kind === 'file' ? (readElf(source.path)?.needed ?? []) : [],
    );
    const missing = [...new Set(wanted)].filter((name) => !names.has(name));
    assert.deepEqual(
      missing.filter((name) => !/^(ld-linux|lib(c|m|dl|rt|pthread)\.so)/.test(name)),
      [],
    );
    assert.ok(names.has('libstdc++.so.6'));
    const own = withoutLibraries(release);
    assert.ok(own.files.every(({ path }) => !path.startsWith('lib/')));
    assert.notEqual(own.id, release.id);
  });

  test('for GPUs has the CUDA build beside the other', async () => {
    const cuda = join('node_modules/@node-llama-cpp', `linux-${architecture}-cuda`);
    const release = await assembleRelease({ ...order(), gpu: 'cuda' });
    const part = releaseParts(release).find(({ name }) => name === cuda);
    assert.ok(part !== undefined && part.bytes > 100_000_000);
    assert.ok(release.files.every(({ path }) => !path.includes('fallback')));
    const fallback = await assembleRelease({ ...order(), gpu: 'cuda-fallback' });
    assert.ok(releaseBytes(fallback) > releaseBytes(release) + 100_000_000);
    assert.deepEqual(
      fallback.files.map(({ path }) => path),
      release.files.map(({ path }) => path),
    );
  });

  test('for another processor is refused with all that would be needed', async () => {
    const other = architecture === 'x64' ? 'arm64' : 'x64';
    await assert.rejects(assembleRelease({ ...order(), target: { architecture: other } }), (error) => {
      assert.ok(error instanceof P4Error && error.code === 'RELEASE_PART_MISSING');
      const missing = error.facts['missing'];
      assert.ok(Array.isArray(missing));
      for (const part of ['runtime/bin/node-program', 'node_sqlite3.node', `koffi-linux-${other}`, 'libstdc++'])
        assert.ok(
          missing.some((line) => String(line).includes(part)),
          part,
        );
      return true;
    });
  });

  test('is refused where the program is not built', async () => {
    await assert.rejects(assembleRelease({ ...order(), root: join(root, 'plans') }), (error) => {
      assert.ok(error instanceof P4Error && error.code === 'RELEASE_PART_MISSING');
      assert.match(error.message, /dist\/agent\/main\.js: the built program/);
      return true;
    });
  });
});

const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
