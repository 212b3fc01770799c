/**
 * What of a release a host lacks, and in which streams it goes there.
 *
 * A stream is a run of bytes with a name that follows from its content: what has arrived of it under that name is good for
 * the next try. A large file is a stream of its own; small ones go together in a pack, in the order of their hashes, so that
 * the same lack makes the same pack.
 */
import { createHash } from 'node:crypto';

import { present } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import type { HostStore } from './host-store.ts';
import { packBytes } from './pack.ts';
import { objectState } from './release-drift.ts';
import type { Release, ReleaseFile } from './release.ts';

export interface Shipment {
  /** The largest first. */
  readonly streams: readonly ShipmentStream[];
  /** Objects whose content is sound and mode or owner is not. */
  readonly misfiled: readonly ReleaseFile[];
  /** Files on their way there that no stream goes on with, by their names in `incoming/`. */
  readonly abandoned: readonly string[];
}

export interface ShipmentStream {
  /** Its name in `incoming/`. */
  readonly name: string;
  /** One file by itself has its object's name already; the files of a pack have to be taken out of it. */
  readonly kind: 'file' | 'pack';
  readonly files: readonly ReleaseFile[];
  readonly bytes: number;
  /** How much of it is on the host. */
  readonly arrivedBytes: number;
}

/** Each content once, with one of the files that have it. */
export function contentsOf({ files }: Release): readonly ReleaseFile[] {
  const contents = new Map(files.map((file) => [file.sha256, file]));
  return [...contents.values()].sort((one, other) => (one.sha256 < other.sha256 ? -1 : 1));
}

/** Objects that are there and whose time says that they were written to: the host has to read them. */
export function touchedObjects(release: Release, store: HostStore): readonly ReleaseFile[] {
  const objects = byPath(store);
  return contentsOf(release).filter(
    (file) => objectState(file, objects.get(file.sha256), store.owner).kind === 'touched',
  );
}

/** @param sound hashes of touched objects whose content was read and found sound */
export function planShipment(release: Release, store: HostStore, sound: ReadonlySet<string>): Shipment {
  const objects = byPath(store);
  const lacking: ReleaseFile[] = [];
  const misfiled: ReleaseFile[] = [];
  for (const file of contentsOf(release)) {
    const state = objectState(file, objects.get(file.sha256), store.owner).kind;
    if (state === 'misfiled' || (state === 'touched' && sound.has(file.sha256))) misfiled.push(file);
    else if (state !== 'sound') lacking.push(file);
  }
  const arrived = new Map(store.incoming.map(({ path, bytes }) => [path, bytes]));
  const streams = streamsOf(lacking).map((stream) => {
    const arrivedBytes = arrived.get(stream.name) ?? 0;
    return { ...stream, arrivedBytes: arrivedBytes <= stream.bytes ? arrivedBytes : 0 };
  });
  const names = new Set(streams.map(({ name }) => name));
  const abandoned = store.incoming.map(({ path }) => path).filter((path) => !names.has(path));
  return { streams, misfiled, abandoned };
}

/** Bytes that a host needs free for it: what is to come, and a second time what has to be taken out of packs. */
export const neededBytes = ({ streams }: Shipment): number =>
  streams.reduce((sum, { kind, bytes, arrivedBytes }) => sum + bytes - arrivedBytes + (kind === 'pack' ? bytes : 0), 0);

type PlannedStream = Omit<ShipmentStream, 'arrivedBytes'>;

function streamsOf(files: readonly ReleaseFile[]): readonly PlannedStream[] {
  const isLarge = ({ bytes }: ReleaseFile): boolean => bytes >= limits.loneObjectBytes;
  const alone = files
    .filter(isLarge)
    .map((file): PlannedStream => ({ name: file.sha256, kind: 'file', files: [file], bytes: file.bytes }));
  const packs: ReleaseFile[][] = [];
  let roomBytes = 0;
  for (const file of files.filter((each) => !isLarge(each))) {
    if (file.bytes > roomBytes || packs.length === 0) {
      packs.push([]);
      roomBytes = limits.packBytes;
    }
    present(packs.at(-1), 'a pack was begun').push(file);
    roomBytes -= file.bytes;
  }
  return [...alone, ...packs.map(packOf)].sort((one, other) => other.bytes - one.bytes);
}

function packOf(files: readonly ReleaseFile[]): PlannedStream {
  const list = files.map(({ sha256, bytes }) => `${sha256} ${bytes}\n`).join('');
  const name = `${createHash('sha256').update(list).digest('hex')}.tar`;
  return { name, kind: 'pack', files, bytes: packBytes(files) };
}

const byPath = ({ objects }: HostStore): ReadonlyMap<string, HostStore['objects'][number]> =>
  new Map(objects.map((entry) => [entry.path, entry]));
