/** All rules, by the file that they are built to. */
import type { Windows } from '../windows.ts';
import { hostAlerts, hostRules } from './host.ts';
import { journalAlerts, journalRules } from './journal.ts';
import { ringAlerts, ringRules } from './ring.ts';
import { ruleFile } from './rule-file.ts';
import type { RuleGroup } from './rule.ts';
import { speedAlerts, speedRules } from './speed.ts';

/** Recordings and the alerts that look at them share a group: an alert sees what was recorded just before. */
export const ruleGroups = (windows: Windows): Readonly<Record<string, readonly RuleGroup[]>> => ({
  'ring.yml': [
    { name: 'p4-speed', rules: [...speedRules(windows), ...speedAlerts] },
    { name: 'p4-ring', rules: [...ringRules(windows), ...ringAlerts(windows)] },
  ],
  'host.yml': [
    { name: 'p4-host', rules: [...hostRules(windows), ...hostAlerts(windows)] },
    { name: 'p4-journal', rules: [...journalRules(windows), ...journalAlerts(windows)] },
  ],
});

/** Texts by the names of their files. */
export const ruleFiles = (windows: Windows): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(ruleGroups(windows)).map(([name, groups]) => [name, ruleFile(groups, windows)]));
