import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { suite, test } from 'node:test';

import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';
import { readElf } from './elf-file.ts';

const addon = join(
  dirname(createRequire(import.meta.url).resolve('sqlite3/package.json')),
  'build/Release/node_sqlite3.node',
);

suite('what a program asks of its machine', () => {
  for (const path of [process.execPath, addon]) {
    test(`is read as the dynamic linker tells it: ${path.slice(path.lastIndexOf('/') + 1)}`, () => {
      const elf = readElf(path);
      assert.equal(elf?.machine, process.arch);
      // glibc's own linker, asked to name the libraries instead of starting the program.
      const told = execFileSync('ldd', [path], { encoding: 'utf8' });
      assert.ok(elf.needed.length > 2);
      for (const name of elf.needed) assert.ok(told.includes(name), `ldd names ${name} too`);
    });
  }

  test('has the versions of symbols by library', () => {
    const versions = readElf(addon)?.versions ?? new Map<string, readonly string[]>();
    assert.ok(versions.get('libc.so.6')?.includes('GLIBC_2.34'));
    assert.ok(versions.get('libstdc++.so.6')?.some((name) => name.startsWith('GLIBCXX_3.4.')));
    assert.ok(versions.get('libstdc++.so.6')?.every((name) => !name.startsWith('GLIBC_')));
  });

  test('is nothing where the file is no program', (context) => {
    const path = join(temporaryFolder(context), 'text');
    for (const text of ['', '#!/bin/sh\n', 'x'.repeat(1000)]) {
      writeFileSync(path, text);
      assert.equal(readElf(path), null);
    }
  });

  test('is not read from a program for a machine of 32 bits', (context) => {
    const path = join(temporaryFolder(context), 'program');
    writeFileSync(path, Buffer.concat([Buffer.from('\x7fELF\x01\x01', 'latin1'), Buffer.alloc(100)]));
    assert.deepEqual(readElf(path), { machine: 'other', needed: [], versions: new Map() });
  });
});
