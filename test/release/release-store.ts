/** A release of a few files and a host's store for it, for tests: sent by a real shell on this machine. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { FileHashes } from '../../provisioner/release/file-hashes.ts';
import { releaseOf, type Release, type ReleaseFile } from '../../provisioner/release/release.ts';
import { sendRelease, type SendProgress, type SendReport } from '../../provisioner/release/release-sending.ts';
import { LocalSession } from '../fixture/local-session.ts';
import { temporaryFolder } from '../fixture/temporary-folder.ts';

const needs = {
  glibc: { version: { major: 2, minor: 17 }, wantedBy: '' },
  libraries: [],
  shippedGlibc: { version: { major: 2, minor: 17 }, wantedBy: '' },
};
export const largeBytes = limits.loneObjectBytes + 12_345;
export const smallBytes = 400_000;

/** A checkout of a few files, one of them large, and a host to send them to. */
export class ReleaseStore {
  readonly root: string;
  readonly session = new LocalSession();
  readonly contents = new Map<string, Buffer>();
  readonly #folder: string;

  constructor(context: TestContext, runtimeBytes = largeBytes) {
    const folder = temporaryFolder(context);
    this.root = join(folder, "host's", 'p4');
    this.#folder = join(folder, 'checkout');
    this.contents.set('runtime/bin/node', randomBytes(runtimeBytes));
    for (let file = 0; file < 40; file += 1) {
      this.contents.set(`dist/part-${file % 4}/file-${file}.js`, Buffer.from(`${'x'.repeat(file * 100)}\n`));
    }
    this.contents.set('dist/empty.js', Buffer.alloc(0));
    this.contents.set('node_modules/@scope/twin.js', Buffer.from('x\n'.repeat(3)));
    this.contents.set('node_modules/@scope/other-twin.js', Buffer.from('x\n'.repeat(3)));
  }

  get place(): { session: LocalSession; root: string } {
    return { session: this.session, root: this.root };
  }

  async release(): Promise<Release> {
    const hashes = FileHashes.forgetful();
    const files = [...this.contents].map(async ([path, content]): Promise<ReleaseFile> => {
      const source = join(this.#folder, path);
      mkdirSync(dirname(source), { recursive: true });
      writeFileSync(source, content);
      const mode = path.startsWith('runtime/') ? 0o755 : 0o644;
      return { path, mode, ...(await hashes.hash(source)), source: { kind: 'file', path: source } };
    });
    return releaseOf(await Promise.all(files), needs);
  }

  send(
    release: Release,
    more: { onProgress?: (progress: SendProgress) => void; signal?: AbortSignal } = {},
  ): Promise<SendReport> {
    return sendRelease(this.session, release, { root: this.root, signal: new AbortController().signal, ...more });
  }

  at(release: Release, path: string): string {
    return join(this.root, 'releases', release.id, path);
  }

  /** Whether every file is there, with its content and mode, and nothing else. */
  expectWhole(release: Release): void {
    const folder = this.at(release, '');
    const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
    assert.equal(found.length, release.files.length);
    for (const { path, mode } of release.files) {
      assert.ok(
        readFileSync(this.at(release, path)).equals(present(this.contents.get(path), 'the bench made it')),
        path,
      );
      const { mode: foundMode, ino } = statSync(this.at(release, path));
      assert.equal(foundMode & 0o7777, mode, path);
      const { sha256 } = present(
        release.files.find((file) => file.path === path),
        'it is in the release',
      );
      assert.equal(statSync(join(this.root, 'objects', sha256)).ino, ino, `${path} is a link to its object`);
    }
    assert.deepEqual(readdirSync(join(this.root, 'incoming')), [], 'nothing is on its way');
    assert.deepEqual(
      readdirSync(join(this.root, 'releases')).filter((name) => name.includes('.')),
      [],
    );
  }
}

export const code = (expected: string) => (error: unknown) => error instanceof P4Error && error.code === expected;
