/**
 * Sends a release to a host: asks what is there, sends what is not, and puts the release's tree together there.
 *
 * Nothing is visible under its final name before it is whole, checked and durable: streams arrive in `incoming/`, objects
 * get their names by renaming, so does the tree. Whatever moment it is interrupted at, what is left are temporary names,
 * which the next run goes on with or removes. A release that is there as it should be costs one look.
 *
 * One run at a time on one host: the caller holds the host's lock.
 */
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { runHostScript, scriptFailure } from '../ssh/host-script.ts';
import type { RemoteOrder, Session } from '../ssh/session.ts';
import { parseStore, surveyScript, surveyStore, type HostStore, type StorePlace } from './host-store.ts';
import { releaseDrifts, type ReleaseDrift } from './release-drift.ts';
import type { Release } from './release.ts';
import { neededBytes, planShipment, touchedObjects, type Shipment, type ShipmentStream } from './shipment.ts';
import { arrivalScript, contentScript, damagedStatus, finishScript, installScript } from './store-scripts.ts';
import { bytesOf, compressed } from './stream-bytes.ts';

export interface SendOptions {
  /** Absolute; `/opt/p4` on a host. */
  readonly root: string;
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: SendProgress) => void;
}

/** Of the bytes that the host lacked: what it had of them from an earlier try counts as sent. */
export interface SendProgress {
  readonly sentBytes: number;
  readonly totalBytes: number;
}

export interface SendReport {
  /** `unchanged`: the release was there; `mended`: it was, and something in it was not as it should be. */
  readonly kind: 'unchanged' | 'mended' | 'installed';
  /** Bytes of files that went over the connection, before compression. */
  readonly sentBytes: number;
}

/** A stream that is damaged on the host is sent once more. */
const tries = 2;

/**
 * Returns when the release is durable on the host.
 *
 * @throws HOST_DISK_FULL, RELEASE_SOURCE_CHANGED, RELEASE_ARRIVED_DAMAGED, HOST_SCRIPT_FAILED, HOST_FACTS_UNREADABLE, and
 *   those of the session
 */
export async function sendRelease(session: Session, release: Release, options: SendOptions): Promise<SendReport> {
  const sending = new Sending(session, release, options);
  for (let attempt = 1; attempt <= tries; attempt += 1) {
    const kind = await sending.attempt();
    if (kind !== 'damaged') return { kind, sentBytes: sending.sentBytes };
  }
  throw new P4Error('RELEASE_ARRIVED_DAMAGED', { host: session.host, release: release.id });
}

class Sending {
  readonly #session: Session;
  readonly #release: Release;
  readonly #options: SendOptions;
  readonly #place: StorePlace;
  /** Bytes a second that the host takes; `null` before anything says. */
  #pace: number | null = null;
  #sentBytes = 0;

  constructor(session: Session, release: Release, options: SendOptions) {
    this.#session = session;
    this.#release = release;
    this.#options = options;
    this.#place = { session, root: options.root, signal: options.signal };
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  async attempt(): Promise<SendReport['kind'] | 'damaged'> {
    const { id } = this.#release;
    const store = await surveyStore(this.#place, id);
    const isThere = store.tree.length > 0;
    const drifts = releaseDrifts(this.#release, store);
    if (drifts.length === 0) return 'unchanged';
    const shipment = planShipment(this.#release, store, await this.#soundObjects(store));
    this.#refuseFullDisk(shipment, store);
    await this.#sendStreams(shipment, store);
    const { hasGzip } = store;
    const outcome = await this.#install(shipment, { drifts, tree: isThere ? id : `${id}.new`, hasGzip });
    if (outcome === 'damaged') return 'damaged';
    if (isThere) return 'mended';
    await this.#run('name the release', { script: finishScript(this.#options.root, id) });
    return 'installed';
  }

  /** Hashes of those touched objects whose content is sound. */
  async #soundObjects(store: HostStore): Promise<ReadonlySet<string>> {
    const touched = touchedObjects(this.#release, store);
    if (touched.length === 0) return new Set();
    const script = contentScript(this.#options.root, touched);
    const sound = await this.#run('read its files', { script: 'exec sh', input: Buffer.from(script) });
    return new Set(sound.split('\n'));
  }

  #refuseFullDisk(shipment: Shipment, { freeBytes }: HostStore): void {
    const needed = neededBytes(shipment);
    if (needed === 0 || freeBytes >= needed + limits.hostSpareBytes) return;
    throw new P4Error('HOST_DISK_FULL', {
      host: this.#session.host,
      folder: this.#options.root,
      neededBytes: needed + limits.hostSpareBytes,
      freeBytes,
    });
  }

  async #sendStreams({ streams }: Shipment, { hasGzip }: HostStore): Promise<void> {
    const totalBytes = streams.reduce((sum, { bytes }) => sum + bytes, 0);
    let sentBytes = streams.reduce((sum, { arrivedBytes }) => sum + arrivedBytes, 0);
    const progress = (bytes: number): void => {
      sentBytes += bytes;
      this.#sentBytes += bytes;
      this.#options.onProgress?.({ sentBytes, totalBytes });
    };
    if (streams.length > 0) progress(0);
    for (const stream of streams) {
      let offset = stream.arrivedBytes;
      while (offset < stream.bytes) {
        const to = partEnd(offset, stream.bytes, this.#pace);
        await this.#sendPart(stream, { from: offset, to, isCompressed: hasGzip && pays(this.#pace), progress });
        offset = to;
      }
    }
  }

  async #sendPart(stream: ShipmentStream, part: StreamPart): Promise<void> {
    const { from, to, isCompressed, progress } = part;
    const counted = countedBytes(bytesOf(stream, part), progress);
    const startedMs = performance.now();
    await this.#run('take files', {
      script: arrivalScript(this.#options.root, { name: stream.name, offset: from, isCompressed }),
      input: isCompressed ? compressed(counted) : counted,
    });
    const seconds = (performance.now() - startedMs) / 1000;
    // Of a short part, most time is the round trip's; what was compressed says nothing of the line.
    if (!isCompressed && to - from >= limits.paceSampleBytes) this.#pace = (to - from) / seconds;
  }

  async #install(
    shipment: Shipment,
    tree: { drifts: readonly ReleaseDrift[]; tree: string; hasGzip: boolean },
  ): Promise<'sound' | 'damaged'> {
    const { root } = this.#options;
    const release = this.#release;
    const script = installScript({ root, release, shipment, ...tree });
    const input = Buffer.from(
      `${script.slice(0, script.lastIndexOf('exit 0'))}\n${surveyScript(root, tree.tree)}\nexit 0\n}\n`,
    );
    const step = 'put the release together';
    const result = await this.#session.run({ script: 'exec sh', input, signal: this.#options.signal });
    if (result.status === damagedStatus) return 'damaged';
    if (result.status !== 0) throw await scriptFailure(this.#session, step, result);
    const store = parseStore(result.stdout.toString('utf8'));
    const left = store === null ? null : releaseDrifts(release, store);
    if (left?.length === 0) return 'sound';
    const said = left === null ? ['no answer'] : left.slice(0, 5).map(({ path, how }) => `${path}: ${how}`);
    throw new P4Error('HOST_SCRIPT_FAILED', { host: this.#session.host, step, said });
  }

  #run(step: string, order: Pick<RemoteOrder, 'script' | 'input'>): Promise<string> {
    return runHostScript(this.#session, step, { ...order, signal: this.#options.signal });
  }
}

interface StreamPart {
  readonly from: number;
  readonly to: number;
  readonly isCompressed: boolean;
  readonly progress: (bytes: number) => void;
}

/** The first part is short: it shows how fast the host takes bytes, and so whether the rest is compressed. */
export const partEnd = (offset: number, bytes: number, pace: number | null): number =>
  pace === null ? Math.min(bytes, offset + limits.paceSampleBytes) : bytes;

/** Whether compressing is faster than sending more. */
export const pays = (pace: number | null): boolean => pace !== null && pace < limits.compressBelowRate;

async function* countedBytes(bytes: AsyncIterable<Buffer>, count: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    yield chunk;
    count(chunk.length);
  }
}
