/** Groups of rules as the YAML that Prometheus reads. */
import { stringify } from 'yaml';

import { durationText, type Windows } from '../windows.ts';
import type { Rule, RuleGroup } from './rule.ts';

export const runbookPath = 'grafana/README.md';

/** The heading of an alert's runbook, as a link in Markdown names it. */
export const runbookOf = (alert: string): string => `${runbookPath}#${alert.toLowerCase()}`;

export function ruleFile(groups: readonly RuleGroup[], windows: Windows): string {
  const document = {
    groups: groups.map(({ name, rules }) => ({
      name,
      interval: durationText(windows.intervalSeconds),
      rules: rules.map((rule) => ruleDocument(rule, windows)),
    })),
  };
  return `# Built by \`npm run grafana\`; edit its sources.\n${stringify(document, { lineWidth: 0 })}`;
}

function ruleDocument(rule: Rule, { holdSeconds }: Windows): unknown {
  switch (rule.kind) {
    case 'recording':
      return { record: rule.name, expr: rule.expression };
    case 'alert':
      return {
        alert: rule.name,
        expr: rule.expression,
        for: durationText(holdSeconds[rule.holds]),
        labels: { severity: rule.severity },
        annotations: { summary: rule.summary, action: rule.action, runbook: runbookOf(rule.name) },
      };
  }
}
