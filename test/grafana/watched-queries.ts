/** For tests: whether a Prometheus that watches a ring has an answer to all that rules and dashboards ask. */
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

import { dashboards } from '../../grafana/dashboards/dashboards.ts';
import { substituted } from '../../grafana/dashboards/grafana-variables.ts';
import type { PanelDefinition } from '../../grafana/dashboards/panel.ts';
import { ruleGroups } from '../../grafana/rules/rule-groups.ts';
import type { Rule } from '../../grafana/rules/rule.ts';
import type { Windows } from '../../grafana/windows.ts';
import { eventually } from '../fixture/eventually.ts';
import type { Prometheus } from './prometheus.ts';

export interface WatchedRing {
  readonly prometheus: Prometheus;
  readonly windows: Windows;
  readonly scrapeSeconds: number;
  readonly ring: string;
}

const panels = Object.values(dashboards).flatMap(({ rows }) => rows.flatMap((row) => row.panels));

const hasPressure = existsSync('/proc/pressure/cpu');
/** Panels some of whose queries have nothing to show in a ring that is well, and why. */
const mayBeEmpty: Readonly<Record<string, string>> = {
  GPUs: 'a host without a GPU has no such series',
  'Calls that were refused or failed': 'none was',
  Compactions: 'the first comes after ten minutes',
  ...(hasPressure ? {} : { 'Waiting for CPU, memory, disk': 'this kernel does not count pressure' }),
};

const allRules = (windows: Windows): readonly Rule[] =>
  Object.values(ruleGroups(windows)).flatMap((groups) => groups.flatMap((group) => group.rules));

/** Waits until every recording rule has given something; fails with those that did not. */
export async function untilAllRecorded({ prometheus, windows }: WatchedRing, withinMs: number): Promise<void> {
  let lacking: readonly string[] = allRules(windows).flatMap((rule) => (rule.kind === 'recording' ? [rule.name] : []));
  await eventually(
    async () => {
      await pause(500);
      const found = await Promise.all(
        lacking.map(async (name) => ((await prometheus.query(name)).length > 0 ? [] : [name])),
      );
      lacking = found.flat();
      return lacking.length === 0;
    },
    { what: 'all are recorded', withinMs },
  ).catch((error: unknown) => {
    throw new Error(`not recorded: ${lacking.join(', ')}`, { cause: error });
  });
}

/** Rules that are not evaluated, or not without a fault. */
export async function faultyRules({ prometheus, windows }: WatchedRing): Promise<readonly string[]> {
  const [rules, wanted] = [await prometheus.rules(), allRules(windows)];
  const missing = wanted.filter(({ name }) => !rules.some((rule) => rule.name === name));
  const faulty = rules.filter(({ health }) => health !== 'ok');
  return [
    ...missing.map(({ name }) => `${name} is not there`),
    ...faulty.map(({ name, health, lastError }) => `${name}: ${health}, ${lastError ?? ''}`),
  ];
}

/** Queries of panels, as Grafana asks them, that have nothing to show and should. */
export async function emptyQueries(of: WatchedRing): Promise<readonly string[]> {
  const answers = panels
    .filter(({ title }) => !Object.hasOwn(mayBeEmpty, title))
    .flatMap(({ title, look, queries }) =>
      queries.map(async ({ expression }) =>
        (await isDrawn(of, inGrafana(expression, of), look)) ? [] : [`${title}: ${expression}`],
      ),
    );
  return (await Promise.all(answers)).flat();
}

/** Lines of panels without a label that their legend names. */
export async function unlabelledLines(of: WatchedRing): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const { title, look, queries } of panels) {
    if (look.kind === 'table' || look.kind === 'matrix') continue;
    for (const { expression, legend } of queries) {
      const labels = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label ?? '');
      const found = await of.prometheus.query(inGrafana(expression, of));
      const isLabelled = found.every(({ metric }) => labels.every((label) => Object.hasOwn(metric, label)));
      if (!isLabelled) lines.push(`${title}: ${legend} of ${expression}`);
    }
  }
  return lines;
}

const inGrafana = (expression: string, { ring, scrapeSeconds }: WatchedRing): string =>
  substituted(expression, { chosen: { ring: [ring], host: 'all' }, stepSeconds: 1, scrapeSeconds });

/** Whether there is anything to draw. */
async function isDrawn(
  { prometheus }: WatchedRing,
  expression: string,
  { kind }: PanelDefinition['look'],
): Promise<boolean> {
  const isNow = kind === 'table' || kind === 'matrix';
  const series = await (isNow ? prometheus.query(expression) : prometheus.queryRange(expression, 15));
  return series.some(({ values }) => values.some(([, value]) => value !== 'NaN'));
}
