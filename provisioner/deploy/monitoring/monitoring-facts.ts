/** What the monitoring host has of Prometheus and Grafana: asked by one script that changes nothing, parsed strictly. */
import type { HostName } from '../../../protocol/ids.ts';
import { shellQuoted } from '../../ssh/shell-quoting.ts';
import { FactLines, factsEnd, factsPreamble } from '../fact-lines.ts';
import { configMark, grafanaLayout, monitoringLayout } from './monitoring-layout.ts';

export interface MonitoringFacts {
  readonly prometheus: PrometheusPresence;
  readonly config: PrometheusConfig;
  /** Whether there is a group that may read the monitor's key, whatever Prometheus it is made for. */
  readonly hasGroup: boolean;
  /** The port that the package's arguments say, `null` where they say none. */
  readonly argumentsPort: number | null;
  /** Whether Debian's exporter of the host's own figures is there: the package's configuration asks it. */
  readonly hasNodeExporter: boolean;
  /** `null` where there is no Grafana. */
  readonly grafana: { readonly hasGroup: boolean } | null;
  /** Rules and dashboards that an earlier deployment put there, as paths. */
  readonly files: readonly string[];
}

export type PrometheusPresence =
  /** Debian's package. */
  | { readonly kind: 'installed' }
  | { readonly kind: 'installable' }
  /** A unit of this name that is not the package's. */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'missing'; readonly why: 'no-apt' | 'no-candidate' };

/** What the package's Prometheus reads. */
export interface PrometheusConfig {
  /** Absolute. */
  readonly path: string;
  /** `package`: as the package brought it. `own`: somebody's. */
  readonly kind: 'absent' | 'ours' | 'package' | 'own';
  /** Whether somebody's own one names our rules and our targets. */
  readonly readsOurs: boolean;
}

const { unit, config, rules, targets } = monitoringLayout;

/**
 * dpkg keeps the hash of every file in `/etc` as the package brought it. What arguments say counts before what is the
 * package's default.
 */
export const monitoringFactsScript = `${factsPreamble}
package=${monitoringLayout.package}
if has dpkg-query; then
  fact package "$(dpkg-query -W -f '\${db:Status-Status}' "$package" 2>/dev/null)"
  conffiles=$(dpkg-query -W -f '\${Conffiles}\\n' "$package" 2>/dev/null)
fi
if has apt-get && has apt-cache; then
  fact apt present
  fact candidate "$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^  Candidate: *//p')"
fi
# What systemd makes of a script that a removed package left is no unit.
case $(systemctl show -p FragmentPath --value ${unit} 2>/dev/null) in '' | /run/systemd/generator*) ;; *) fact unit present ;; esac
config=${config}
arguments=$(sed -n 's/^ARGS=//p' ${monitoringLayout.arguments} 2>/dev/null | tail -n 1)
argument() { printf '%s\\n' "$arguments" | sed -n "s/.*--$1[= ]['\\"]*\\([^ '\\"]*\\).*/\\1/p"; }
named=$(argument 'config\\.file')
case $named in /*) config=$named ;; esac
port=$(argument 'web\\.listen-address')
if [ -n "$port" ]; then fact arguments-port "\${port##*:}"; fi
fact config-path "$config"
if [ ! -e "$config" ]; then fact config absent
else
  IFS= read -r first <"$config" || true
  sum=$(md5sum <"$config")
  case $first in ${shellQuoted(configMark)}*) fact config ours ;; *)
    if printf '%s\\n' "$conffiles" | grep -qxF " $config \${sum%% *}"; then fact config package
    else
      fact config own
      if grep -qF ${targets} "$config" && grep -qF ${rules}/ "$config"; then fact reads-ours yes; fi
    fi ;;
  esac
fi
if getent group ${monitoringLayout.group} >/dev/null; then fact group present; fi
if [ -x /usr/bin/prometheus-node-exporter ]; then fact node-exporter present; fi
if [ -d ${grafanaLayout.configuration} ]; then fact grafana present; fi
if getent group ${grafanaLayout.group} >/dev/null; then fact grafana-group present; fi
for file in ${rules}/* ${grafanaLayout.dashboards}/*; do
  if [ -f "$file" ]; then fact file "$file"; fi
done
echo ${factsEnd}
`;

/** @throws HOST_FACTS_UNREADABLE */
export function parseMonitoringFacts(host: HostName, text: string): MonitoringFacts {
  const lines = new FactLines(host, text);
  const [port = ''] = lines.one('arguments-port', /^(\d{0,5})$/);
  return {
    prometheus: presenceOf(lines),
    config: configOf(lines),
    hasGroup: lines.text('group') !== '',
    argumentsPort: port === '' ? null : Number(port),
    hasNodeExporter: lines.text('node-exporter') !== '',
    grafana: lines.text('grafana') === '' ? null : { hasGroup: lines.text('grafana-group') !== '' },
    files: lines.many('file', /^(\/.+)$/).map(([path = '']) => path),
  };
}

function configOf(lines: FactLines): PrometheusConfig {
  const [path = ''] = lines.one('config-path', /^(\/.+)$/);
  const kind = lines.oneOf('config', ['absent', 'ours', 'package', 'own']);
  // A file that somebody named in the arguments is theirs, whether it is there or not.
  return { path, kind: path === config ? kind : 'own', readsOurs: lines.text('reads-ours') !== '' };
}

function presenceOf(lines: FactLines): PrometheusPresence {
  if (lines.text('package') === 'installed') return { kind: 'installed' };
  if (lines.text('unit') !== '') return { kind: 'foreign' };
  if (lines.text('apt') === '') return { kind: 'missing', why: 'no-apt' };
  const candidate = lines.text('candidate');
  return candidate === '' || candidate === '(none)'
    ? { kind: 'missing', why: 'no-candidate' }
    : { kind: 'installable' };
}
