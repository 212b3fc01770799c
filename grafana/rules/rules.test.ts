import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { isRecorded, metricOf, seriesIn } from '../metric-use.ts';
import { realWindows, scaledWindows } from '../windows.ts';
import { runbookOf } from './rule-file.ts';
import { ruleGroups } from './rule-groups.ts';
import type { AlertRule, Rule } from './rule.ts';

/** This file is built to `dist/grafana/rules/`. */
const folder = join(import.meta.dirname, '../../../grafana');

const rules: readonly Rule[] = Object.values(ruleGroups(realWindows))
  .flat()
  .flatMap((group) => group.rules);
const alerts = rules.filter((rule): rule is AlertRule => rule.kind === 'alert');
const recorded = rules.flatMap((rule) => (rule.kind === 'recording' ? [rule.name] : []));

suite('rules', () => {
  test('read only what agents show or what was recorded', () => {
    const unknown = rules.flatMap(({ name, expression }) =>
      seriesIn(expression)
        .filter((series) => (isRecorded(series) ? !recorded.includes(series) : metricOf(series) === null))
        .map((series) => `${name}: ${series}`),
    );
    assert.deepEqual(unknown, []);
  });

  test('have names of their own', () => {
    const names = rules.map(({ name }) => name);
    assert.deepEqual(
      names.filter((name, index) => names.indexOf(name) !== index),
      [],
    );
  });

  test('that alert have a runbook, and a test in which each fires', () => {
    const readme = readFileSync(join(folder, 'README.md'), 'utf8');
    const tests = readdirSync(join(folder, 'rules/tests'))
      .map((file) => readFileSync(join(folder, 'rules/tests', file), 'utf8'))
      .join('\n');
    for (const { name } of alerts) {
      assert.ok(readme.includes(`\n### ${name}\n`), `a section about ${name}`);
      assert.ok(tests.includes(`alertname="${name}"`), `a test in which ${name} fires`);
      assert.equal(runbookOf(name), `grafana/README.md#${name.toLowerCase()}`);
    }
    const sections = [...readme.matchAll(/^### (P4\w+)$/gm)].map(([, name]) => name);
    assert.deepEqual(sections.sort(), alerts.map(({ name }) => name).sort());
  });

  test('differ from those of a proof in their windows alone', () => {
    const shape = (windows: typeof realWindows): readonly string[] =>
      Object.values(ruleGroups(windows)).flatMap((groups) =>
        groups.flatMap(({ rules: all }) =>
          all.map(({ name, expression }) => `${name} ${expression.replace(/\[\w+\]|(?<![\w.])\d+(?![\w.])/g, '…')}`),
        ),
      );
    assert.deepEqual(shape(scaledWindows(120, 1)), shape(realWindows));
  });
});
