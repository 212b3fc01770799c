/** For tests: gives a host that reaches no network beyond the test's a source of Debian packages of its own. */
import assert from 'node:assert/strict';
import { packageSource } from './base-image.ts';
import { attempt } from './command.ts';
import type { TestHost } from './test-host.ts';

const folder = '/srv/packages';

/** From then on apt knows just these packages there, and what they need. */
export async function offerPackages(host: TestHost, ...names: readonly string[]): Promise<void> {
  const source = await packageSource(names);
  const packed = await attempt(['tar', '-C', source, '-c', '.']);
  assert.equal(packed.status, 0, packed.stderr);
  await host.run(`mkdir -p ${folder} && tar -x -C ${folder}`, { input: packed.stdout });
  await host.putFile('/etc/apt/sources.list', `deb [trusted=yes] file:${folder} ./\n`);
  await host.run('apt-get -q update');
}
