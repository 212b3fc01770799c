/**
 * A dashboard as data: rows of panels, and the variables that a reader chooses.
 *
 * In the form that every Grafana from 10 on takes as a file. The SDK calls it deprecated for one that only the newest read.
 */
/* eslint-disable @typescript-eslint/no-deprecated */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import {
  AnnotationQueryBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
  VariableSort,
  type Dashboard,
  type VariableModel,
} from '@grafana/grafana-foundation-sdk/dashboard';

import { datasource, panel, type PanelDefinition } from './panel.ts';

export interface DashboardDefinition {
  /** Stays the same, so that an import replaces what was there. */
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly variable: ChosenLabel;
  /** Alerts that are marked in its panels, as a selector of labels. */
  readonly alerts: string;
  readonly rows: readonly PanelRow[];
}

export interface PanelRow {
  readonly title: string;
  readonly panels: readonly PanelDefinition[];
}

/** A variable whose values are those of a label. */
export interface ChosenLabel {
  readonly name: string;
  readonly label: string;
  readonly series: string;
  /** Whether several may be chosen, and all are at first. */
  readonly isMany: boolean;
}

const tag = 'p4';
/** Grafana's number for a query of that kind. */
const labelValues = 1;

export function dashboard({ uid, title, description, variable, alerts, rows }: DashboardDefinition): Dashboard {
  const built = new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags([tag])
    .readonly()
    .refresh('30s')
    .time({ from: 'now-6h', to: 'now' })
    .tooltip(DashboardCursorSync.Crosshair)
    .withVariable(new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'))
    .withVariable(labelVariable(variable))
    .annotation(alertMarks(alerts))
    .link(
      new DashboardLinkBuilder('p4').type(DashboardLinkType.Dashboards).tags([tag]).keepTime(true).includeVars(true),
    );
  for (const row of rows) {
    built.withRow(new RowBuilder(row.title));
    for (const each of row.panels) built.withPanel(panel(each));
  }
  return built.build();
}

function labelVariable({ name, label, series, isMany }: ChosenLabel): Builder<VariableModel> {
  const query = `label_values(${series}, ${name})`;
  const built = new QueryVariableBuilder(name)
    .label(label)
    .datasource(datasource)
    .query({ qryType: labelValues, query, refId: 'PrometheusVariableQueryEditor-VariableQuery' })
    .definition(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.NaturalAsc);
  if (!isMany) return built;
  return built
    .multi(true)
    .includeAll(true)
    .allValue('.+')
    .current({ text: ['All'], value: ['$__all'] });
}

const alertMarks = (selector: string): AnnotationQueryBuilder =>
  new AnnotationQueryBuilder()
    .name('Alerts')
    .datasource(datasource)
    .enable(true)
    .iconColor('red')
    .expr(`ALERTS{alertstate="firing", alertname=~"P4.+", ${selector}}`)
    .titleFormat('{{alertname}}')
    .textFormat('{{severity}} {{host}} {{ring}} {{stage}}')
    .step('60s');
