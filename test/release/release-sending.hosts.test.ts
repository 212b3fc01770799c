import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import { packBytes } from '../../provisioner/release/pack.ts';
import { releaseOf, type ReleaseFile } from '../../provisioner/release/release.ts';
import { partEnd, pays, type SendProgress } from '../../provisioner/release/release-sending.ts';
import { verifyRelease } from '../../provisioner/release/host-releases.ts';
import { surveyStore } from '../../provisioner/release/host-store.ts';
import { LocalSession } from '../fixture/local-session.ts';
import { code, largeBytes, ReleaseStore } from './release-store.ts';

suite('sending a release', () => {
  test('puts it together on a bare host, tells its progress, and a second time does nothing', async (context) => {
    const store = new ReleaseStore(context);
    const release = await store.release();
    const told: SendProgress[] = [];
    const report = await store.send(release, { onProgress: (progress) => told.push(progress) });
    const unique = [...new Map(release.files.map((file) => [file.sha256, file])).values()];
    const isAlone = ({ bytes }: ReleaseFile): boolean => bytes >= limits.loneObjectBytes;
    const aloneBytes = unique.filter(isAlone).reduce((sum, { bytes }) => sum + bytes, 0);
    const totalBytes = aloneBytes + packBytes(unique.filter((file) => !isAlone(file)));
    assert.ok(unique.length < release.files.length, 'twins go once');
    assert.deepEqual(report, { kind: 'installed', sentBytes: totalBytes });
    assert.deepEqual(told.at(0), { sentBytes: 0, totalBytes });
    assert.deepEqual(told.at(-1), { sentBytes: totalBytes, totalBytes });
    store.expectWhole(release);
    assert.deepEqual(await verifyRelease(store.place, release), []);

    const [bytes, orders] = [store.session.sentBytes, store.session.orders];
    assert.deepEqual(await store.send(release), { kind: 'unchanged', sentBytes: 0 });
    assert.equal(store.session.sentBytes, bytes, 'not a byte');
    assert.equal(store.session.orders, orders + 1, 'one look');
  });

  test('sends kilobytes when one line of the program changes', async (context) => {
    const store = new ReleaseStore(context);
    await store.send(await store.release());
    store.contents.set('dist/part-1/file-5.js', Buffer.from('another line\n'));
    const release = await store.release();
    const before = store.session.sentBytes;
    assert.deepEqual(await store.send(release), { kind: 'installed', sentBytes: 2048 }, 'its blocks in an archive');
    assert.ok(
      store.session.sentBytes - before < 32 * 1024,
      `${store.session.sentBytes - before} bytes, scripts and all`,
    );
    store.expectWhole(release);
    assert.equal((await surveyStore(store.place, release.id)).releases.length, 2);
  });

  test('goes on where it was when the link was lost', async (context) => {
    const store = new ReleaseStore(context);
    const release = await store.release();
    store.session.losesLinkAfterBytes = 9_000_000;
    await assert.rejects(store.send(release), code('HOST_LOST'));
    assert.equal(existsSync(store.at(release, '')), false, 'no release yet');
    const seen = await surveyStore({ session: new LocalSession(), root: store.root }, release.id);
    assert.deepEqual(seen.releases, []);
    assert.deepEqual(readdirSync(join(store.root, 'incoming')).length, 1);

    store.session.losesLinkAfterBytes = Infinity;
    const report = await store.send(release);
    assert.equal(report.kind, 'installed');
    const large = statSync(store.at(release, 'runtime/bin/node')).size;
    assert.ok(report.sentBytes < large - 8_000_000, `${report.sentBytes} bytes the second time`);
    store.expectWhole(release);
  });

  test('is cancelled, and starts anew with other contents: what was left of the former goes', async (context) => {
    const store = new ReleaseStore(context);
    const controller = new AbortController();
    const onProgress = ({ sentBytes }: SendProgress): void => {
      if (sentBytes > 1_000_000) controller.abort();
    };
    await assert.rejects(
      store.send(await store.release(), { onProgress, signal: controller.signal }),
      code('CANCELLED'),
    );
    assert.equal(readdirSync(join(store.root, 'incoming')).length, 1);
    store.contents.set('runtime/bin/node', randomBytes(largeBytes));
    const release = await store.release();
    await store.send(release);
    store.expectWhole(release);
  });

  test('sends again what arrived damaged, and says so when that does not help', async (context) => {
    const store = new ReleaseStore(context);
    const release = await store.release();
    store.session.losesLinkAfterBytes = 9_000_000;
    await assert.rejects(store.send(release), code('HOST_LOST'));
    store.session.losesLinkAfterBytes = Infinity;
    const [partial = ''] = readdirSync(join(store.root, 'incoming'));
    writeFileSync(join(store.root, 'incoming', partial), randomBytes(1_000_000));
    await store.send(release);
    store.expectWhole(release);
  });

  test('refuses a file that changed after it was looked at', async (context) => {
    const store = new ReleaseStore(context);
    const release = await store.release();
    const { source } = present(
      release.files.find(({ path }) => path === 'dist/part-1/file-9.js'),
      'the store made it',
    );
    assert.ok(source.kind === 'file');
    const text = readFileSync(source.path);
    writeFileSync(source.path, text.fill('y'));
    await assert.rejects(store.send(release), code('RELEASE_ARRIVED_DAMAGED'));
    writeFileSync(source.path, '');
    await assert.rejects(store.send(release), code('RELEASE_SOURCE_CHANGED'));
    rmSync(source.path);
    await assert.rejects(store.send(release), code('RELEASE_SOURCE_CHANGED'));
    assert.equal(existsSync(store.at(release, '')), false);
  });

  test('refuses a host without room before it sends anything', async (context) => {
    const store = new ReleaseStore(context);
    const { files, needs } = await store.release();
    const huge = files.map((file) => ({ ...file, bytes: file.bytes + 2 ** 45 }));
    await assert.rejects(store.send(releaseOf(huge, needs)), code('HOST_DISK_FULL'));
    assert.equal(store.session.sentBytes, 0);
  });

  test('compresses where the line is slow, and sends a sample first', () => {
    assert.equal(pays(null), false);
    assert.equal(pays(12_000_000), true);
    assert.equal(pays(110_000_000), false);
    assert.equal(partEnd(0, 1e9, null), limits.paceSampleBytes);
    assert.equal(partEnd(1000, 2000, null), 2000);
    assert.equal(partEnd(1000, 1e9, 110_000_000), 1e9);
  });
});
