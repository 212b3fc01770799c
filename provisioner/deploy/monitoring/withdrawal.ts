/**
 * Takes a host's monitoring away again: what deploy put there for Prometheus and Grafana, and nothing of theirs. The package's
 * configuration of Prometheus comes back where ours had replaced it; the package itself stays.
 */
import { shellWords } from '../../ssh/shell-quoting.ts';
import { configMark, grafanaLayout, monitoringLayout } from './monitoring-layout.ts';

const { config, packageConfig, dropIn, dropInFolder, folder, unit } = monitoringLayout;
const { dataSource, provider } = grafanaLayout;

const isOurs = `is_ours() {
  [ -f "$1" ] || return 1
  IFS= read -r first <"$1" || true
  case $first in ${shellWords(configMark)}*) return 0 ;; *) return 1 ;; esac
}`;

/**
 * Part of a script: prints a line for each piece that is there, in the order they are taken away.
 * @param command what prints one: its last argument is the path
 */
export const piecesScript = (command: string): string => `${isOurs}
if is_ours ${config}; then ${command} ${config}; fi
for piece in ${shellWords(dropIn, dataSource, provider, grafanaLayout.folder, folder)}; do
  if [ -e "$piece" ]; then ${command} "$piece"; fi
done`;

/**
 * Part of a script that runs with or without `-e`: what cannot be done is looked at by who calls. Units that run have what
 * is left read; those that do not are not started.
 */
export const withdrawScript = `${isOurs}
prometheus= grafana=
if is_ours ${config}; then
  prometheus=changed
  if [ -f ${packageConfig} ]; then { cp -p ${packageConfig} ${config}.p4-new && mv -fT ${config}.p4-new ${config}; } || exit 1
  else rm -f ${config}; fi
fi
if [ -e ${dropIn} ]; then prometheus=changed; rm -f ${dropIn}; fi
if [ -d ${dropInFolder} ]; then rmdir --ignore-fail-on-non-empty ${dropInFolder}; fi
for file in ${shellWords(dataSource, provider)}; do
  if [ -e "$file" ]; then grafana=changed; rm -f "$file"; fi
done
rm -rf ${shellWords(grafanaLayout.folder, folder)}
if [ -n "$prometheus" ]; then systemctl daemon-reload; systemctl try-restart ${unit} || true; fi
if [ -n "$grafana" ]; then systemctl try-restart ${grafanaLayout.unit} || true; fi`;

/** What stays behind on a host that had these pieces, for people; empty where nothing does. */
export const leftBehind = (pieces: readonly string[]): readonly string[] => [
  ...(pieces.some((piece) => piece === config || piece === dropIn)
    ? ['the package prometheus stays, with its own configuration and the figures it has; apt-get purge takes it away']
    : []),
  ...(pieces.includes(folder) && !pieces.includes(config)
    ? [`where a configuration of somebody's own names ${folder}, those lines have to go`]
    : []),
  ...(pieces.includes(dataSource) ? ['Grafana keeps the data source p4 until it is deleted there'] : []),
];
