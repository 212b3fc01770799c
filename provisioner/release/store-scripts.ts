/**
 * The scripts that change a host's store of releases, as text.
 *
 * Those that name every file are too long for a command line and go to `sh` on its standard input. They are one group in
 * braces: a shell runs nothing of it before it has read the closing brace, so a connection that is lost on the way leaves
 * no half-read command behind.
 */
import { gzipSync } from 'node:zlib';

import { shellQuoted, shellWords } from '../ssh/shell-quoting.ts';
import { fixedTimeText } from './host-store.ts';
import { foldersOf, type ReleaseDrift } from './release-drift.ts';
import { packOffsets } from './pack.ts';
import type { Release, ReleaseFile } from './release.ts';
import type { Shipment, ShipmentStream } from './shipment.ts';
import { tarEnd, tarHeader } from './tar-entry.ts';

/** Exit status: something that arrived is not what was sent; its streams are removed. */
export const damagedStatus = 9;

/** Takes a stream's bytes from standard input, from an offset on: writing the same bytes twice changes nothing. */
export const arrivalScript = (root: string, part: { name: string; offset: number; isCompressed: boolean }): string =>
  `umask 077 && mkdir -p ${shellQuoted(`${root}/incoming`)} && cd ${shellQuoted(`${root}/incoming`)} &&
${part.isCompressed ? 'gzip -dc | ' : ''}dd of=${part.name} bs=262144 seek=${part.offset} oflag=seek_bytes conv=notrunc status=none
`;

/** Prints the names of those objects whose content is what they are called after. */
export const contentScript = (root: string, objects: readonly ReleaseFile[]): string =>
  grouped([
    `cd ${shellQuoted(`${root}/objects`)}`,
    ...objects.map(({ sha256 }) => `if [ "$(sha256sum <${sha256})" = "${sha256}  -" ]; then echo ${sha256}; fi`),
  ]);

export interface Installation {
  readonly root: string;
  readonly release: Release;
  readonly shipment: Shipment;
  /** What of the release's tree is to be made right: everything is missing where it is new. */
  readonly drifts: readonly ReleaseDrift[];
  /** Name below `releases/` of the folder that is made right: `<id>`, or `<id>.new` for one that is not there yet. */
  readonly tree: string;
  readonly hasGzip: boolean;
}

/**
 * Checks what has arrived, makes it durable, and links the release's tree to it.
 *
 * Temporary names of earlier runs go. A file that is replaced in a standing tree is replaced at once, by renaming.
 */
export function installScript(installation: Installation): string {
  const { root, shipment } = installation;
  return grouped([
    'set -e',
    'umask 022',
    'export LC_ALL=C TZ=UTC0',
    'flush() { sync -f . 2>/dev/null || sync; }',
    // A process for each file is what takes longest here: GNU's tar does with one of them.
    'tar=; if tar --version 2>/dev/null | grep -q GNU; then tar=there; fi',
    ...objectsPart(root, shipment),
    ...treePart(installation),
    'flush',
  ]);
}

function objectsPart(root: string, { streams, misfiled, abandoned }: Shipment): readonly string[] {
  const lines = [
    `mkdir -p ${shellWords(`${root}/objects`, `${root}/incoming`, `${root}/releases`)}`,
    `chmod 755 ${shellWords(root, `${root}/objects`, `${root}/releases`)}`,
    `cd ${shellQuoted(`${root}/incoming`)}`,
    ...inGroups(abandoned, (names) => `rm -rf -- ${shellWords(...names.map((name) => `./${name}`))}`),
    ...streams.flatMap(unpackLines),
  ];
  const arrived = streams.flatMap(({ files }) => files);
  if (arrived.length > 0) {
    const names = shellWords(...streams.map(({ name }) => name));
    const sums = arrived.map(({ sha256 }) => `${sha256}  ${sha256}\n`).join('');
    lines.push(
      // printf is the shell's own: no argument list is too long for it.
      `printf %s ${shellQuoted(sums)} | sha256sum -c --status - || { rm -rf ./*; exit ${damagedStatus}; }`,
      ...settled(arrived),
      'flush',
      ...inGroups(arrived, (files) => `mv -f ${shellWords(...files.map(({ sha256 }) => sha256))} ../objects/`),
      `rm -f ${names}`,
    );
  }
  lines.push('cd ../objects', ...settled(misfiled));
  return [...lines, 'cd ..'];
}

/** Without GNU's tar: `dd` reads exactly what it is told to, from a file. */
function unpackLines({ kind, name, files, bytes }: ShipmentStream): readonly string[] {
  const whole = `[ "$(stat -c %s ${name})" = ${bytes} ] || { rm -rf ./*; exit ${damagedStatus}; }`;
  if (kind === 'file') return [whole];
  return [
    whole,
    'if [ "$tar" ]; then',
    `says=$(tar -xf ${name} --no-same-owner 2>&1) || case $says in`,
    '  *"No space left on device"* | *"Disk quota exceeded"*) printf \'%s\\n\' "$says" >&2; exit 1 ;;',
    `  *) rm -rf ./*; exit ${damagedStatus} ;;`,
    'esac',
    'else',
    `take() { dd if=${name} of="$1" bs=1M skip="$2" count="$3" iflag=skip_bytes,count_bytes status=none; }`,
    ...packOffsets(files).map(([file, offset]) => `take ${file.sha256} ${offset} ${file.bytes}`),
    'fi',
  ];
}

/** Mode, owner and time as every object has them. */
function settled(files: readonly ReleaseFile[]): readonly string[] {
  return [0o644, 0o755].flatMap((mode) =>
    inGroups(
      files.filter((file) => file.mode === mode),
      (group) => {
        const names = shellWords(...group.map(({ sha256 }) => sha256));
        return `chown "$(id -u):$(id -g)" ${names} && chmod ${mode.toString(8)} ${names} && touch -t ${fixedTimeText} ${names}`;
      },
    ),
  );
}

function treePart({ root, release, drifts, tree, hasGzip }: Installation): readonly string[] {
  const files = new Map(release.files.map((file) => [file.path, file]));
  const folders = new Set(foldersOf(release));
  const wrong = new Set(drifts.map(({ path }) => path));
  const extra = drifts.filter(({ how }) => how === 'extra').map(({ path }) => path);
  const wrongFiles = [...wrong].map((path) => files.get(path)).filter((file) => file !== undefined);
  const wrongFolders = [...folders].filter((path) => wrong.has(path));
  // Something else stands in a folder's place.
  const inFolders = drifts.filter(({ path, how }) => how === 'content' && folders.has(path)).map(({ path }) => path);
  return [
    // Remains of runs that were interrupted.
    `rm -rf -- releases/*.new releases/*.gone`,
    `mkdir -p releases/${tree}`,
    `cd releases/${tree}`,
    `objects=${shellQuoted(`${root}/objects`)}`,
    ...inGroups(extra, (paths) => `rm -rf -- ${shellWords(...paths.map((path) => `./${path}`))}`),
    ...inGroups(inFolders, (paths) => `rm -rf ${paths.join(' ')}`),
    ...inGroups(wrongFolders, (paths) => {
      const names = paths.join(' ');
      return `mkdir -p ${names} && chown "$(id -u):$(id -g)" ${names} && chmod 755 ${names}`;
    }),
    ...(tree === release.id ? replacingLines(wrongFiles) : linkingLines(wrongFiles, hasGzip)),
    'cd ../..',
  ];
}

/** In a tree that is in use, each file is replaced at once. */
const replacingLines = (files: readonly ReleaseFile[]): readonly string[] => [
  'put() {',
  `  if [ "$objects/$1" -ef "$2" ]; then return; fi`,
  `  if [ -d "$2" ]; then rm -rf "$2"; fi`,
  `  ln "$objects/$1" "$2.p4-new"`,
  `  mv -fT "$2.p4-new" "$2"`,
  '}',
  ...files.map(({ sha256, path }) => `put ${sha256} ${path}`),
];

/** In a new tree: an archive of nothing but links, where it can be unpacked. */
function linkingLines(files: readonly ReleaseFile[], hasGzip: boolean): readonly string[] {
  const headers = files.map(({ sha256, path }) =>
    tarHeader({ kind: 'hard-link', path, target: `../../objects/${sha256}` }),
  );
  const archive = Buffer.concat([...headers.filter((header) => header !== null), tarEnd]);
  const text = (hasGzip ? gzipSync(archive) : archive).toString('base64').replace(/.{76}/g, '$&\n');
  const add = ({ sha256, path }: ReleaseFile): string => `ln "$objects/${sha256}" ${path}`;
  return [
    'if [ "$tar" ]; then',
    // -P: the links' targets are outside of the tree.
    `base64 -d <<'links' |${hasGzip ? ' gzip -dc |' : ''} tar -xPf -`,
    text,
    'links',
    ...files.filter((_file, index) => headers[index] === null).map(add),
    'else',
    ...files.map(add),
    'fi',
  ];
}

/** Names a finished tree by its release; from then on it is one. */
export const finishScript = (root: string, id: string): string => `set -e
cd ${shellQuoted(root)}
mv -T releases/${id}.new releases/${id}
sync -f . 2>/dev/null || sync
`;

/** A release that goes is none from the first moment on; then the objects that nothing links to any more go. */
export const pruneScript = (root: string, ids: readonly string[]): string => `set -e
cd ${shellQuoted(root)} 2>/dev/null || exit 0
for id in ${shellWords(...ids)}; do
  if [ -d "releases/$id" ]; then mv -T "releases/$id" "releases/$id.gone"; fi
done
rm -rf -- releases/*.gone releases/*.new incoming/*
if [ -d objects ]; then find objects -type f -links 1 -exec rm -f {} +; fi
`;

const grouped = (lines: readonly string[]): string => `{\n${lines.join('\n')}\nexit 0\n}\n`;

/** Keeps argument lists far below the kernel's bound (128 KiB an argument, 2 MiB together). */
function inGroups<Item>(items: readonly Item[], line: (group: readonly Item[]) => string): readonly string[] {
  const groups: string[] = [];
  for (let first = 0; first < items.length; first += argumentsAtOnce) {
    groups.push(line(items.slice(first, first + argumentsAtOnce)));
  }
  return groups;
}

const argumentsAtOnce = 1000;
