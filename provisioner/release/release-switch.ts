/** Which releases a host has, which of them it uses, and letting old ones go. */
import { P4Error } from '../../protocol/errors.ts';
import { scriptFailed, surveyStore, type InstalledRelease, type StorePlace } from './host-store.ts';
import { releaseDrifts, type ReleaseDrift } from './release-drift.ts';
import type { Release } from './release.ts';
import { absentStatus, activateScript, pruneScript } from './store-scripts.ts';

export interface Activation {
  /** The release that was in use before, to go back to; `null` where there was none. */
  readonly former: string | null;
  readonly isChanged: boolean;
}

/** No release has this name: nothing is listed. */
const nothing = 'none';

/** Switches `current`, durably and at once. @throws RELEASE_NOT_SENT, HOST_SCRIPT_FAILED; those of the session */
export async function activateRelease(place: StorePlace, id: string): Promise<Activation> {
  const { status, stdout, stderr } = await runIn(place, activateScript(place.root, id));
  if (status === absentStatus) throw new P4Error('RELEASE_NOT_SENT', { host: place.session.host, release: id });
  if (status !== 0) throw scriptFailed(place.session, 'switch to the release', stderr);
  const former = /^releases\/([0-9a-f]{16})$/.exec(stdout.toString('utf8').trim())?.[1] ?? null;
  return { former, isChanged: former !== id };
}

/** Id of the release in use; `null` where there is none. */
export async function currentRelease(place: StorePlace): Promise<string | null> {
  return (await surveyStore(place, nothing)).current;
}

/** The newest first. */
export async function installedReleases(place: StorePlace): Promise<readonly InstalledRelease[]> {
  return newestFirst((await surveyStore(place, nothing)).releases);
}

/**
 * Everything in which the release on the host differs from this one; everything is missing where it is not there.
 *
 * One look at names, sizes, modes, owners and times, in milliseconds: nothing is read (`host-store.ts` says what that finds).
 */
export async function verifyRelease(place: StorePlace, release: Release): Promise<readonly ReleaseDrift[]> {
  return releaseDrifts(release, await surveyStore(place, release.id));
}

export interface Retention {
  /** How many releases stay besides those named: the newest. */
  readonly keep: number;
  /** Ids of releases that stay in any case; the one in use always does. */
  readonly inUse: readonly string[];
}

/** Removes other releases, objects that no release has, and remains of interrupted runs. @returns the ids that went */
export async function pruneReleases(place: StorePlace, retention: Retention): Promise<readonly string[]> {
  const { releases, current } = await surveyStore(place, nothing);
  const gone = releasesToRemove(releases, current, retention);
  const { status, stderr } = await runIn(place, pruneScript(place.root, gone));
  if (status !== 0) throw scriptFailed(place.session, 'remove old releases', stderr);
  return gone;
}

export function releasesToRemove(
  releases: readonly InstalledRelease[],
  current: string | null,
  { keep, inUse }: Retention,
): readonly string[] {
  const others = newestFirst(releases).filter(({ id }) => id !== current && !inUse.includes(id));
  return others.slice(keep).map(({ id }) => id);
}

const newestFirst = (releases: readonly InstalledRelease[]): readonly InstalledRelease[] =>
  [...releases].sort((one, other) => other.sinceSeconds - one.sinceSeconds || (one.id < other.id ? -1 : 1));

function runIn({ session, signal }: StorePlace, script: string): ReturnType<StorePlace['session']['run']> {
  return session.run({ script, ...(signal === undefined ? {} : { signal }) });
}
