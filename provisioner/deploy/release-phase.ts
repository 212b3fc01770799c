/** The phase `release`: which release each host is to have, what of it is there, and sending the rest. */
import process from 'node:process';

import { present } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import { packageFolder } from '../command.ts';
import { FileHashes } from '../release/file-hashes.ts';
import { chooseLibraries } from '../release/host-libraries.ts';
import { assembleRelease } from '../release/release-assembly.ts';
import { sendRelease } from '../release/release-sending.ts';
import { pruneReleases, verifyRelease } from '../release/host-releases.ts';
import { withoutLibraries, type Release, type ReleaseArchitecture } from '../release/release.ts';
import type { ReleaseGpu } from '../release/native-parts.ts';
import type { StateFolder } from '../state-folder.ts';
import { cudaDecision } from './cuda.ts';
import type { Deployment } from './deploy-order.ts';
import type { ReleaseState } from './difference.ts';
import { onHosts } from './fork.ts';
import { hostLayout } from '../host-layout.ts';
import type { HostRun } from './host-run.ts';

/** What is at hand is what this machine runs itself; hosts of another architecture are refused by name. */
export const ownArchitecture: ReleaseArchitecture = process.arch === 'arm64' ? 'arm64' : 'x64';

/** A host's release, and how much of it is there. */
export interface HostRelease {
  readonly release: Release;
  readonly state: ReleaseState;
}

export type HostReleases = ReadonlyMap<HostRun, HostRelease>;

/** Puts releases together, each kind once. */
export class ReleaseShelf {
  readonly #hashes: FileHashes;
  readonly #made = new Map<string, Promise<Release>>();

  private constructor(hashes: FileHashes) {
    this.#hashes = hashes;
  }

  static async open(state: StateFolder): Promise<ReleaseShelf> {
    return new ReleaseShelf(await FileHashes.open(state));
  }

  /** @throws RELEASE_PART_MISSING, RELEASE_SOURCE_CHANGED */
  release(architecture: ReleaseArchitecture, gpu: ReleaseGpu): Promise<Release> {
    const key = `${architecture} ${gpu}`;
    const made =
      this.#made.get(key) ??
      assembleRelease({ root: packageFolder, target: { architecture }, gpu, hashes: this.#hashes });
    this.#made.set(key, made);
    return made;
  }

  /** Remembers what was hashed. */
  async close(): Promise<void> {
    await this.#hashes.save();
  }
}

/** @throws HOST_LIBRARIES_OLD, RELEASE_PART_MISSING */
export async function releaseFor(host: HostRun, shelf: ReleaseShelf): Promise<Release> {
  const isCuda = cudaDecision(host.facts.nvidia, host.host.variables.gpus).kind === 'use';
  const whole = await shelf.release(ownArchitecture, isCuda ? 'cuda' : 'none');
  const whose = chooseLibraries(
    host.name,
    whole.needs,
    present(host.libraries, 'the host was asked for its libraries'),
  );
  return whose === 'own' ? withoutLibraries(whole) : whole;
}

/** How much of a release is on a host. */
export async function releaseStateOn(host: HostRun, release: Release, signal: AbortSignal): Promise<ReleaseState> {
  const drifts = await verifyRelease({ session: host.session, root: hostLayout.programs, signal }, release);
  const isAbsent = drifts.some(({ path, how }) => path === '.' && how === 'missing');
  return drifts.length === 0 ? 'whole' : isAbsent ? 'absent' : 'damaged';
}

/** Sends what is lacking. Nothing that runs sees it: `current` is switched later. */
export async function sendReleases(
  { order, hosts, report, signal }: Deployment,
  releases: HostReleases,
): Promise<void> {
  await onHosts({ phase: 'release', hosts, forks: order.forks }, async (host) => {
    const { release, state } = present(releases.get(host), 'the release of the host is known');
    if (state === 'whole') return;
    report.at(host.name, 'looking at what is there');
    let totalBytes = 0;
    try {
      const { sentBytes } = await sendRelease(host.session, release, {
        root: hostLayout.programs,
        signal,
        onProgress: (progress) => {
          ({ totalBytes } = progress);
          report.upload(host.name, progress);
        },
      });
      if (totalBytes > 0) report.sent(host.name, { sentBytes, totalBytes });
    } finally {
      report.at(host.name, null);
    }
    for (const change of host.changesIn('release')) {
      host.noteMade(change);
      report.change(host.name, change);
    }
  });
}

/** Removes releases that nobody goes back to. */
export async function pruneOld({ order, hosts, report, signal }: Deployment): Promise<void> {
  await onHosts(
    { phase: report.current ?? 'verify', hosts: hosts.filter(({ isSwitched }) => isSwitched), forks: order.forks },
    async (host) => {
      await pruneReleases({ session: host.session, root: hostLayout.programs, signal }, limits.keptReleases);
    },
  );
}
