/** Tries out a configuration and its rules with the host's own promtool, in a folder that nobody reads. */
import { hostLayout } from '../../host-layout.ts';
import { shellQuoted } from '../../ssh/shell-quoting.ts';
import type { HostScript } from '../apply.ts';
import { inFolder, prometheusConfig, type MonitoringFiles, type PrometheusSettings } from './monitoring-files.ts';

const folder = `${hostLayout.runtime}-monitoring-trial`;

/** Ends well where there is no promtool. Of certificates and targets promtool wants only that they are there. */
export function trialScript(files: Pick<MonitoringFiles, 'rules'>, settings: PrometheusSettings): HostScript {
  const config = `${folder}/prometheus.yml`;
  const contents = new Map([
    [config, inFolder(prometheusConfig(settings), folder)],
    ...[...files.rules].map(([name, text]) => [`${folder}/rules/${name}`, text] as const),
    [`${folder}/targets.json`, '[]'],
    ...['authority.crt', 'monitor.crt', 'monitor.key'].map((name) => [`${folder}/${name}`, ''] as const),
  ]);
  const script = `set -eu
command -v promtool >/dev/null 2>&1 || exit 0
rm -rf ${folder}
trap 'rm -rf ${folder}' EXIT
mkdir -p -m 700 ${folder} ${folder}/rules
put() { IFS= read -r content; printf '%s' "$content" | base64 -d >"$1"; }
${[...contents.keys()].map((path) => `put ${shellQuoted(path)}`).join('\n')}
promtool check config ${config} >&2
`;
  const lines = [...contents.values()].map((text) => `${Buffer.from(text).toString('base64')}\n`);
  return { script, input: Buffer.from(lines.join('')) };
}
