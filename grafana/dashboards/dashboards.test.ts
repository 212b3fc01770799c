import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { metricNames } from '../../protocol/metric-table.ts';
import { isRecorded, metricOf, seriesIn } from '../metric-use.ts';
import { ruleGroups } from '../rules/rule-groups.ts';
import { realWindows } from '../windows.ts';
import { dashboards, unshown } from './dashboards.ts';
import { substituted } from './grafana-variables.ts';

const panels = Object.values(dashboards).flatMap(({ title, rows }) =>
  rows.flatMap((row) => row.panels.map((panel) => ({ dashboard: title, ...panel }))),
);
const rules = Object.values(ruleGroups(realWindows)).flatMap((groups) => groups.flatMap((group) => group.rules));
const recorded = rules.flatMap((rule) => (rule.kind === 'recording' ? [rule.name] : []));

suite('panels', () => {
  test('read only what agents show or what rules record', () => {
    const unknown = panels.flatMap(({ title, queries }) =>
      queries
        .flatMap(({ expression }) => seriesIn(expression))
        .filter((series) => (isRecorded(series) ? !recorded.includes(series) : metricOf(series) === null))
        .map((series) => `${title}: ${series}`),
    );
    assert.deepEqual(unknown, []);
  });

  test('and rules read every metric that agents show, or there is a reason', () => {
    const read = [...panels.flatMap(({ queries }) => queries), ...rules].flatMap(({ expression }) =>
      seriesIn(expression),
    );
    const shown = new Set(read.flatMap((series) => metricOf(series) ?? []));
    const isShown = (name: (typeof metricNames)[number]): boolean => shown.has(name);
    assert.deepEqual(
      metricNames.filter((name) => !isShown(name) && !Object.hasOwn(unshown, name)),
      [],
    );
    assert.deepEqual(
      metricNames.filter((name) => isShown(name) && Object.hasOwn(unshown, name)),
      [],
    );
  });

  test('show what is recorded, unless an alert or another rule alone needs it', () => {
    const read = new Set(
      [...panels.flatMap(({ queries }) => queries), ...rules].flatMap(({ expression }) => seriesIn(expression)),
    );
    assert.deepEqual(
      recorded.filter((name) => !read.has(name)),
      [],
    );
  });

  test('say what they show, what is normal and what to do, with a unit and a legend for every line', () => {
    for (const { title, shows, normal, otherwise, unit, queries } of panels) {
      for (const text of [shows, normal, otherwise]) assert.match(text, /^\S.{3,}\.$/u, title);
      assert.notEqual(unit, '', title);
      assert.ok(queries.length > 0, title);
      for (const { legend } of queries) assert.notEqual(legend, '', title);
    }
  });

  test('name only labels that their query keeps', () => {
    for (const { title, queries } of panels) {
      for (const { expression, legend } of queries) {
        const kept = /^(?:sum|max|min|avg)(?: by \(([^)]*)\))? \(/.exec(expression);
        if (kept === null) continue;
        const labels = (kept[1] ?? '').split(', ');
        for (const [, label = ''] of legend.matchAll(/\{\{(\w+)\}\}/g)) {
          if (title !== 'Hops, stage by stage' && title !== 'Stages')
            assert.ok(labels.includes(label), `${title}: ${label}`);
        }
      }
    }
  });

  test('have names of their own on a dashboard', () => {
    const names = panels.map(({ dashboard, title }) => `${dashboard}: ${title}`);
    assert.equal(new Set(names).size, names.length);
  });
});

suite('variables of a query', () => {
  const values = { chosen: { ring: ['tale'] }, stepSeconds: 15, scrapeSeconds: 15 };
  test('are put in place as Grafana does', () => {
    assert.equal(substituted('rate(a{ring="$ring"}[$__rate_interval])', values), 'rate(a{ring="tale"}[60s])');
    assert.equal(substituted('a[$__rate_interval]', { ...values, stepSeconds: 120 }), 'a[135s]');
    assert.equal(substituted('a{host=~"$host"}', { ...values, chosen: { host: ['a', 'b'] } }), 'a{host=~"(a|b)"}');
    assert.equal(substituted('a{host=~"$host"}', { ...values, chosen: { host: 'all' } }), 'a{host=~".+"}');
  });
});
