/** The scripts of an upload, for `sh` on a host. Pure. */
import { shellQuoted } from './shell-quoting.ts';

export interface UploadPlace {
  readonly destination: string;
  readonly folder: string;
  /** Of the file in its folder. */
  readonly name: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly mode: number;
  readonly owner: string;
}

/** Exit statuses with a meaning of their own. */
export const uploadStatus = { damaged: 90 } as const;

/** Where the file grows. A former upload of other contents to the same place has another name. */
const temporaryPath = ({ folder, name, sha256 }: UploadPlace): string =>
  `${folder === '/' ? '' : folder}/.${name}.${sha256}.p4-upload`;

/** Prints the bytes that are there of the file, and those that are free on its file system. */
export const standScript = (place: UploadPlace): string => `
set -eu
temporary=${shellQuoted(temporaryPath(place))}
bytes=0
if [ -f "$temporary" ] && [ ! -L "$temporary" ]; then bytes=$(stat -c %s -- "$temporary"); fi
space=$(stat -f -c '%f %S %d %c' -- ${shellQuoted(place.folder)})
set -- $space
free=$(($1 * $2))
# A file system that counts its files and has room for none more has no room.
if [ "$bytes" = 0 ] && [ "$4" != 0 ] && [ "$3" = 0 ]; then free=0; fi
printf '%s %s\\n' "$bytes" "$free"
`;

/** Takes what is to come after the first bytes. What is at the place and no file of ours is removed first. */
export const sendScript = (place: UploadPlace, offset: number): string => `${receiving(place, offset)}
exec cat >>"$temporary"
`;

const receiving = (place: UploadPlace, offset: number): string => `
set -eu
umask 077
temporary=${shellQuoted(temporaryPath(place))}
if [ ! -f "$temporary" ] || [ -L "$temporary" ]; then rm -rf -- "$temporary"; fi
${offset === 0 ? ': >"$temporary"' : `[ "$(stat -c %s -- "$temporary")" = ${offset} ]`}`;

/** Checks what has arrived and puts it in its place. Prints what it is where it is not what was sent. */
export const finishScript = (place: UploadPlace): string => `
set -eu
temporary=${shellQuoted(temporaryPath(place))}
destination=${shellQuoted(place.destination)}
bytes=$(stat -c %s -- "$temporary")
found="$bytes bytes"
if [ "$bytes" = ${place.bytes} ]; then found=$(sha256sum <"$temporary"); found=\${found%% *}; fi
if [ "$found" != ${place.sha256} ]; then
  rm -f -- "$temporary"
  printf '%s\\n' "$found"
  exit ${uploadStatus.damaged}
fi
chown ${shellQuoted(place.owner)} -- "$temporary"
chmod ${place.mode.toString(8)} -- "$temporary"
sync -- "$temporary"
mv -fT -- "$temporary" "$destination"
sync -- ${shellQuoted(place.folder)}
# What uploads of other contents to this place have left.
for left in ${shellQuoted(place.folder === '/' ? '' : place.folder)}/.${shellQuoted(place.name)}.*.p4-upload; do
  if [ -e "$left" ]; then rm -f -- "$left"; fi
done
`;

/** All in one, for a file that is not worth going on with. */
export const wholeScript = (place: UploadPlace): string => `
${receiving(place, 0)}
cat >>"$temporary"
${finishScript(place)}
`;
