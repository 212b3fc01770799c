/** How far a host's releases are as they should be, and letting old ones go. */
import { runHostScript } from '../ssh/host-script.ts';
import { surveyStore, type InstalledRelease, type StorePlace } from './host-store.ts';
import { releaseDrifts, type ReleaseDrift } from './release-drift.ts';
import type { Release } from './release.ts';
import { pruneScript } from './store-scripts.ts';

/** No release has this name: nothing is listed. */
const nothing = 'none';

/**
 * Everything in which the release on the host differs from this one; everything is missing where it is not there.
 *
 * One look at names, sizes, modes, owners and times, in milliseconds: nothing is read (`host-store.ts` says what that finds).
 */
export async function verifyRelease(place: StorePlace, release: Release): Promise<readonly ReleaseDrift[]> {
  return releaseDrifts(release, await surveyStore(place, release.id));
}

/**
 * Removes old releases, objects that no release has, and remains of interrupted runs.
 *
 * @param keep how many releases stay besides the one in use: the newest
 * @returns the ids that went
 */
export async function pruneReleases(place: StorePlace, keep: number): Promise<readonly string[]> {
  const { session, root, signal } = place;
  const { releases, current } = await surveyStore(place, nothing);
  const gone = newestFirst(releases)
    .filter(({ id }) => id !== current)
    .slice(keep)
    .map(({ id }) => id);
  const order = { script: pruneScript(root, gone), ...(signal === undefined ? {} : { signal }) };
  await runHostScript(session, 'remove old releases', order);
  return gone;
}

const newestFirst = (releases: readonly InstalledRelease[]): readonly InstalledRelease[] =>
  [...releases].sort((one, other) => other.sinceSeconds - one.sinceSeconds || (one.id < other.id ? -1 : 1));
