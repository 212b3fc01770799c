/** For tests: the release in use, switched as deploy does it: looked at, compared, and changed where it differs. */
import { readlinkSync } from 'node:fs';
import { join } from 'node:path';

import { actualScript, parseActual } from '../../provisioner/deploy/actual.ts';
import { applyScript } from '../../provisioner/deploy/apply.ts';
import { changesOf } from '../../provisioner/deploy/difference.ts';
import { agentPhaseOf } from '../../provisioner/deploy/phase.ts';
import type { Resource } from '../../provisioner/deploy/resource.ts';
import { currentTarget } from '../../provisioner/host-layout.ts';
import type { StorePlace } from '../../provisioner/release/host-store.ts';
import { runHostScript } from '../../provisioner/ssh/host-script.ts';

/** @returns what was done, a line each; nothing where the release was in use */
export async function useRelease({ session, root }: StorePlace, id: string): Promise<readonly string[]> {
  const link: Resource = { kind: 'link', path: join(root, 'current'), target: currentTarget(id) };
  const seen = await runHostScript(session, 'look at the link', { script: actualScript([link]) });
  const actual = parseActual(session.host, [link], seen);
  const changes = changesOf({ desired: [link], actual, release: 'whole', phaseOf: agentPhaseOf });
  await runHostScript(session, 'point the link', applyScript(changes));
  return changes.map(({ text }) => text);
}

export const releaseInUse = ({ root }: StorePlace): string => readlinkSync(join(root, 'current'));
