import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';
import { paddingOf, tarEnd, tarHeader, type TarEntry } from './tar-entry.ts';

const header = (entry: TarEntry): Buffer => present(tarHeader(entry), 'the entry has room');

test('tar unpacks files and hard links, those with long paths too', (context) => {
  const folder = temporaryFolder(context);
  writeFileSync(join(folder, 'object'), 'shared');
  const home = join(folder, 'tree');
  mkdirSync(home);
  const long = `${'a-folder-with-a-name/'.repeat(7)}${'f'.repeat(90)}`;
  const contents = new Map([
    ['empty', ''],
    ['a block', 'x'.repeat(512)],
    [long, 'some text'],
  ]);
  const archive = Buffer.concat([
    ...[...contents].flatMap(([path, text]) => [
      header({ kind: 'file', path, bytes: text.length }),
      Buffer.from(text),
      Buffer.alloc(paddingOf(text.length)),
    ]),
    header({ kind: 'hard-link', path: 'linked/again', target: '../object' }),
    tarEnd,
  ]);
  execFileSync('tar', ['-xPf', '-', '--no-same-owner'], { cwd: home, input: archive });
  for (const [path, text] of contents) assert.equal(readFileSync(join(home, path), 'utf8'), text);
  assert.equal(statSync(join(home, 'linked/again')).ino, statSync(join(folder, 'object')).ino);
});

test('a name that has no room is no entry', () => {
  assert.equal(tarHeader({ kind: 'file', path: 'f'.repeat(101), bytes: 1 }), null);
  assert.equal(tarHeader({ kind: 'file', path: 'fünf', bytes: 1 }), null);
  assert.equal(tarHeader({ kind: 'hard-link', path: 'f', target: 't'.repeat(101) }), null);
});
