import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';

import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import { withEngine } from './engine-fixture.ts';
import { findLibraryFiles } from './library-folder.ts';
import { loadLlamaLibrary } from './llama-library.ts';

// In order: once the libraries are loaded, a process keeps them.

test('a folder without the libraries is refused with the places looked at', () => {
  withFolder((folder) => {
    assert.throws(() => loadLlamaLibrary({ device: 'cpu', folder }), isCode('ENGINE_LIBRARY_MISSING', folder));
    const missing = join(folder, 'none');
    assert.throws(() => findLibraryFiles('cpu', missing), isCode('ENGINE_LIBRARY_MISSING', missing));
  });
});

test('the environment names the folder on a host without packages', () => {
  withFolder((folder) => {
    process.env['P4_LLAMA_LIBRARIES'] = folder;
    try {
      assert.throws(() => findLibraryFiles('cpu', null), isCode('ENGINE_LIBRARY_MISSING', folder));
    } finally {
      delete process.env['P4_LLAMA_LIBRARIES'];
    }
    assert.match(findLibraryFiles('cpu', null).llama, /libllama/);
  });
});

test('libraries that lack a function are refused', () => {
  withFolder((folder) => {
    const real = findLibraryFiles('cpu', null);
    for (const name of ['libggml-base.so', 'libggml.so', 'libllama.so']) symlinkSync(real.base, join(folder, name));
    assert.throws(() => loadLlamaLibrary({ device: 'cpu', folder }), isCode('ENGINE_LIBRARY_MISMATCH', folder));
  });
});

test('another version of llama.cpp is refused before any of its structs is used', () => {
  withFolder((folder) => {
    const real = findLibraryFiles('cpu', null);
    for (const path of [real.base, real.ggml]) copyFileSync(path, join(folder, basename(path)));
    const bytes = readFileSync(real.llama);
    bytes.write('0.9.1-dev', bytes.indexOf('0.5.0-dev\0'));
    writeFileSync(join(folder, basename(real.llama)), bytes);
    assert.throws(() => loadLlamaLibrary({ device: 'cpu', folder }), isCode('ENGINE_LIBRARY_MISMATCH', '0.9.1-dev'));
  });
});

test('a GPU that is not there is refused with the devices that are', () => {
  const device = { kind: 'gpu', index: 63, layers: 8 } as const;
  assert.throws(() => withEngine({ device }, () => 0), isCode('ENGINE_DEVICE_ABSENT', 'CPU'));
});

function withFolder(use: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'p4-libraries-'));
  try {
    use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function isCode(code: ErrorCode, says: string): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof P4Error, String(error));
    assert.equal(error.code, code);
    assert.ok(error.message.includes(says), error.message);
    return true;
  };
}
