/**
 * The Debian file system that hosts start from, made once per machine and kept below the system's cache folder by a digest
 * of how it is made. Hosts lay their own files over it and never write into it.
 *
 * It is made under a temporary name and renamed, so a folder with the right name is a whole one. A layer with more packages
 * is the difference to the base only.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.ts';
import { isAbandoned, newOwnedName } from './owner.ts';
import { Turn } from './turn.ts';

const cacheFolder = '/var/cache/p4-test-hosts';
const suite = 'bookworm';
const packages = [
  'systemd',
  'systemd-sysv',
  'dbus',
  'openssh-server',
  'iproute2',
  'procps',
  'sudo',
  'iputils-ping',
  // Preloaded into a unit of a test, it shifts the clock that the unit sees. An sshd does not bear it.
  'libfaketime',
];

/** The password of `ops` for sudo. It is good for nothing else: sshd takes keys only. */
export const opsPassword = 'correct horse';

const sshdSettings =
  'PasswordAuthentication no\nAuthorizedKeysFile .ssh/authorized_keys /etc/ssh/authorized_keys.d/%u\n';
/** What would start by itself in a host that lives for minutes. */
const unwantedUnits = ['apt-daily.timer', 'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'e2scrub_all.timer'];

/** Run in the new file system by its own shell. */
const customization = `
set -e
useradd --create-home --shell /bin/bash ops
printf 'ops:%s\\n' '${opsPassword}' | chpasswd
printf '%s' '${sshdSettings}' > /etc/ssh/sshd_config.d/test-hosts.conf
mkdir /etc/ssh/authorized_keys.d
rm -f /etc/ssh/ssh_host_* /etc/machine-id /etc/hostname /etc/resolv.conf /var/lib/dbus/machine-id
ln -sf /dev/null /etc/systemd/system/console-getty.service
for unit in ${unwantedUnits.join(' ')}; do ln -sf /dev/null "/etc/systemd/system/$unit"; done
`;

const digestOf = (parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);

const base = join(cacheFolder, digestOf([suite, ...packages, customization]));

export interface BaseImage {
  /** Folders for an overlay's `lowerdir`, the topmost first. */
  readonly layers: readonly string[];
  /** How long it took to make what was not there; 0 when all was. */
  readonly madeInMs: number;
}

/** The base, made if it is not there; with `more` packages in a layer of their own. As root. */
export async function baseImage(more: readonly string[] = []): Promise<BaseImage> {
  const startedAtMs = performance.now();
  await mkdir(cacheFolder, { recursive: true, mode: 0o700 });
  await removeAbandoned();
  const layer = join(cacheFolder, digestOf([base, ...more]));
  const isWhole = existsSync(base) && (more.length === 0 || existsSync(layer));
  if (!isWhole) {
    await inTurn(async () => {
      if (!existsSync(base)) await make(base, makeBase);
      if (more.length > 0 && !existsSync(layer))
        await make(layer, (folder) => inOverlay({ folder, script: installing, more }));
    });
  }
  return {
    layers: more.length === 0 ? [base] : [layer, base],
    madeInMs: isWhole ? 0 : performance.now() - startedAtMs,
  };
}

/**
 * A folder with Debian packages, and all that they need beyond the base, as a source for apt: hosts reach no other. Fetched
 * once, and kept beside the base image. The image has to be there.
 */
export async function packageSource(wanted: readonly string[]): Promise<string> {
  const folder = join(cacheFolder, digestOf([base, 'source', ...wanted]));
  await inTurn(async () => {
    if (!existsSync(folder))
      await make(folder, (files) => inOverlay({ folder: files, script: fetching, more: wanted }));
  });
  return folder;
}

async function inTurn(action: () => Promise<void>): Promise<void> {
  const turn = await Turn.take(join(cacheFolder, 'making.lock'));
  try {
    await action();
  } finally {
    await turn.end();
  }
}

/** Has `folder` filled under a temporary name. */
async function make(folder: string, fill: (files: string) => Promise<void>): Promise<void> {
  const temporary = join(cacheFolder, newOwnedName().name);
  const files = join(temporary, 'files');
  await mkdir(files, { recursive: true });
  try {
    await fill(files);
    await rename(files, folder);
  } finally {
    await removeTree(temporary);
  }
}

/** What former runs, ended in the middle of it, did not finish. */
async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(cacheFolder)) if (isAbandoned(name)) await removeTree(join(cacheFolder, name));
}

/** Mounts of the making are in a namespace of their own and gone by now. */
const removeTree = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });

async function makeBase(folder: string): Promise<void> {
  const include = `--include=${packages.join(',')}`;
  const hook = `--customize-hook=chroot "$1" sh -c ${quoted(customization)}`;
  await run(['mmdebstrap', '--quiet', '--variant=minbase', include, hook, suite, folder], { timeoutMs: 600_000 });
  // Its umask or ours must not close the root folder to the users of a host.
  await run(['chmod', '755', folder]);
}

/** Leaves the difference to the base. */
const installing = `
chroot "$root" apt-get install --yes --no-install-recommends "$@" >&2
chroot "$root" apt-get clean
umount "$root/proc"
rm -rf "$root"/var/lib/apt/lists/* "$root/etc/resolv.conf" "$root/usr/sbin/policy-rc.d"
`;

/** Leaves nothing in the folder but packages, and the index that apt reads. */
const fetching = `
chroot "$root" apt-get install --download-only --yes --no-install-recommends "$@" >&2
umount "$root/proc" "$root"
mv "$folder/var/cache/apt/archives" "$top/fetched"
find "$folder" -mindepth 1 -delete
for package in "$top"/fetched/*.deb; do
  name=$(basename "$package")
  dpkg-deb --field "$package"
  printf 'Filename: ./%s\\nSize: %s\\nSHA256: %s\\n\\n' "$name" "$(stat -c %s "$package")" "$(sha256sum <"$package" | cut -d ' ' -f 1)"
done >"$folder/Packages"
mv "$top"/fetched/*.deb "$folder"
`;

interface OverlayWork {
  readonly folder: string;
  readonly script: string;
  /** Names of packages, the script's arguments. */
  readonly more: readonly string[];
}

/** Runs a script that finds the base in the folder `$root`, with apt's lists; what it changes there is in `$folder`. */
async function inOverlay({ folder, more, script }: OverlayWork): Promise<void> {
  const whole = `
set -e
base=$1; folder=$2; shift 2
top=$(dirname "$folder"); root=$top/root; scratch=$top/scratch
mkdir "$root" "$scratch"
chmod 755 "$folder"
mount -t overlay overlay -o "lowerdir=$base,upperdir=$folder,workdir=$scratch" "$root"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\\nexit 101\\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
mount -t proc proc "$root/proc"
export DEBIAN_FRONTEND=noninteractive
chroot "$root" apt-get update >&2
${script}`;
  const words = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', whole, 'sh', base, folder, ...more];
  const [program = '', ...rest] = words;
  await run([program, ...rest], { timeoutMs: 300_000 });
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
