/** The files that are built from here and committed: a Prometheus or a Grafana reads them as they are. */
import { ruleFiles } from './rules/rule-groups.ts';
import { realWindows } from './windows.ts';

/** Texts by paths in this folder. */
export function builtFiles(): Readonly<Record<string, string>> {
  const rules = Object.entries(ruleFiles(realWindows)).map(([name, text]) => [`rules/${name}`, text] as const);
  return Object.fromEntries(rules);
}
