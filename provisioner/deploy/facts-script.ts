/**
 * Asks a host what it is: one POSIX shell script, run as root, that changes nothing.
 *
 * It prints one fact a line, `name=value`, and ends with `end`, so that a cut-off answer is told from a whole one. It
 * needs no more than what comes with systemd and a shell.
 */
import { shellQuoted } from '../ssh/shell-quoting.ts';
import { factsEnd, factsPreamble } from './fact-lines.ts';
import { piecesScript } from './monitoring/withdrawal.ts';

/** Libraries that the CUDA build is linked with and does not bring along. */
export const cudaLibraries = ['libcuda.so.1', 'libcudart.so.13', 'libcublas.so.13', 'libcublasLt.so.13'] as const;

/**
 * @param folders absolute paths whose file systems are looked at; they need not be there yet
 */
export const factsScript = (folders: readonly string[]): string => `${factsPreamble}
if [ -r /etc/os-release ]; then
  ( . /etc/os-release; fact os-id "$ID"; fact os-version "$VERSION_ID"; fact os-name "$PRETTY_NAME" )
fi
fact kernel "$(uname -s) $(uname -r)"
fact machine "$(uname -m)"
if libc=$(getconf GNU_LIBC_VERSION 2>/dev/null); then fact libc "$libc"; else fact libc "$(ldd --version 2>&1 | head -n 1)"; fi
if has systemctl; then fact systemd "$(systemctl --version | head -n 1)"; fi
if [ -d /run/systemd/system ]; then fact booted systemd; fi
fact machine-id "$(cat /etc/machine-id 2>/dev/null)"
fact hostname "$(uname -n)"
fact cpus "$(getconf _NPROCESSORS_ONLN)"
fact memory-kib "$(sed -n 's/^MemTotal: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo)"
fact clock "$(date +%s)"
for folder in ${folders.map(shellQuoted).join(' ')}; do
  there=$folder
  while [ ! -e "$there" ]; do there=$(dirname "$there"); done
  fact disk "$folder $(df -Pk "$there" | awk 'NR == 2 { print $4 }')"
done
for daemon in /usr/lib/polkit-1/polkitd /usr/libexec/polkitd /usr/libexec/polkit-1/polkitd /usr/lib/policykit-1/polkitd; do
  if [ -x "$daemon" ] && [ -d /usr/share/polkit-1/rules.d ]; then fact polkit "$daemon"; break; fi
done
if has ip; then
  for address in $(ip -o addr show | awk '{ print $4 }'); do fact address "\${address%/*}"; done
fi
for unit in $(systemctl list-units --plain --no-legend --state=active 'p4-stage@*.service' 2>/dev/null | awk '{ print $1 }'); do
  fact stage-unit "$unit"
done
if [ -r /sys/module/nvidia/version ]; then fact nvidia-driver "$(cat /sys/module/nvidia/version)"; fi
if [ -d /proc/driver/nvidia ]; then fact nvidia-device present; fi
if has ldconfig; then
  libraries=$(ldconfig -p)
  for library in ${cudaLibraries.join(' ')}; do
    if printf '%s\\n' "$libraries" | grep -q "^[[:space:]]*$library "; then fact library "$library"; fi
  done
fi
if has nvidia-smi; then
  nvidia-smi --query-gpu=index,memory.total,name --format=csv,noheader,nounits 2>/dev/null | while IFS= read -r gpu; do
    fact gpu "$gpu"
  done
fi
${piecesScript('fact monitoring')}
echo ${factsEnd}
`;
