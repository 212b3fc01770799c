/** The files that are built from here and committed: a Prometheus or a Grafana reads them as they are. */
import { dashboardFiles } from './dashboards/dashboards.ts';
import { ruleFiles } from './rules/rule-groups.ts';
import { realWindows } from './windows.ts';

/** Texts by paths in this folder. */
export function builtFiles(): Readonly<Record<string, string>> {
  const within = (folder: string, files: Readonly<Record<string, string>>): readonly (readonly [string, string])[] =>
    Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]);
  return Object.fromEntries([...within('rules', ruleFiles(realWindows)), ...within('dashboards', dashboardFiles())]);
}
