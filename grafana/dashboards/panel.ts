/** What a panel shows and says, as data, and the same in Grafana's own types. */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import {
  AxisPlacement,
  BigValueColorMode,
  BigValueGraphMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  StackingConfigBuilder,
  StackingMode,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import {
  MappingType,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type Panel,
  type Threshold,
  type ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatPanelBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as StatesPanelBuilder } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder as TablePanelBuilder } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as LinesPanelBuilder } from '@grafana/grafana-foundation-sdk/timeseries';

export interface PanelDefinition {
  readonly title: string;
  /** What it shows, what is normal, and what to do when it is not: the panel's description. */
  readonly shows: string;
  readonly normal: string;
  readonly otherwise: string;
  /** As Grafana names units: `s`, `bytes`, `percentunit`, … */
  readonly unit: string;
  readonly queries: readonly Query[];
  readonly look: Look;
  /** Of 24 columns. */
  readonly width: number;
  readonly most?: number;
  readonly decimals?: number;
  /** From which value on which colour; below the first it is green. */
  readonly steps?: readonly { readonly from: number; readonly color: string }[];
  /** The colour below the first step. */
  readonly below?: string;
  /** Words for whole values. */
  readonly words?: Readonly<Record<string, { readonly text: string; readonly color: string }>>;
}

/**
 * `lines`: over time. `number`: now, with its course behind. `states`: bars over time. `matrix`: now, one label by another.
 * `table`: now, a row for each series.
 */
export type Look =
  | { readonly kind: 'lines'; readonly isStacked?: boolean }
  | { readonly kind: 'number' }
  | { readonly kind: 'states' }
  | { readonly kind: 'matrix'; readonly row: string; readonly column: string }
  | { readonly kind: 'table'; readonly hidden: readonly string[] };

export interface Query {
  readonly expression: string;
  /** With labels as `{{label}}`. */
  readonly legend: string;
  /** The unit of a second axis, on the right. */
  readonly rightUnit?: string;
}

/** What every panel's queries are asked of: the dashboard's variable of that name. */
export const datasource = { type: 'prometheus', uid: '${datasource}' };

const isPointInTime = ({ kind }: Look): boolean => kind === 'matrix' || kind === 'table';

export function panel(definition: PanelDefinition): Builder<Panel> {
  const { look } = definition;
  switch (look.kind) {
    case 'lines':
      return lines(definition, look.isStacked === true);
    case 'number':
      return dressed(new StatPanelBuilder(), definition)
        .graphMode(BigValueGraphMode.Area)
        .colorMode(BigValueColorMode.Value)
        .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']).fields('').values(false));
    case 'states':
      return dressed(new StatesPanelBuilder(), definition).fillOpacity(70).legend(legend(false)).tooltip(tooltip());
    case 'matrix':
      return dressed(new TablePanelBuilder(), definition).withTransformation({
        id: 'groupingToMatrix',
        options: { columnField: look.column, rowField: look.row, valueField: 'Value', emptyValue: 'null' },
      });
    case 'table':
      return dressed(new TablePanelBuilder(), definition).withTransformation({
        id: 'organize',
        options: { excludeByName: Object.fromEntries(look.hidden.map((name) => [name, true])) },
      });
  }
}

function lines(definition: PanelDefinition, isStacked: boolean): Builder<Panel> {
  const built = dressed(new LinesPanelBuilder(), definition)
    .legend(legend(true))
    .tooltip(tooltip())
    .lineWidth(1)
    .fillOpacity(isStacked ? 30 : 5)
    .showPoints(VisibilityMode.Never)
    .axisSoftMin(0);
  if (isStacked) built.stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group('A'));
  definition.queries.forEach(({ rightUnit }, index) => {
    if (rightUnit === undefined) return;
    built.overrideByQuery(letter(index), [
      { id: 'custom.axisPlacement', value: AxisPlacement.Right },
      { id: 'unit', value: rightUnit },
    ]);
  });
  return built;
}

/** What all kinds of panels of the SDK have alike. */
interface AnyPanelBuilder {
  title(title: string): this;
  description(text: string): this;
  datasource(of: typeof datasource): this;
  unit(unit: string): this;
  span(columns: number): this;
  height(rows: number): this;
  min(value: number): this;
  max(value: number): this;
  decimals(count: number): this;
  noValue(text: string): this;
  thresholds(of: ThresholdsConfigBuilder): this;
  mappings(of: ValueMapping[]): this;
  withTarget(target: DataqueryBuilder): this;
}

function dressed<Kind extends AnyPanelBuilder>(builder: Kind, definition: PanelDefinition): Kind {
  const { title, shows, normal, otherwise, unit, queries, look, width, most, decimals, words } = definition;
  builder
    .title(title)
    .description(`${shows}\n\n**Normal:** ${normal}\n\n**Otherwise:** ${otherwise}`)
    .datasource(datasource)
    .unit(unit)
    .span(width)
    .height(look.kind === 'number' ? 5 : 8)
    .noValue('none')
    .thresholds(thresholds(definition));
  if (look.kind === 'lines') builder.min(0);
  if (most !== undefined) builder.max(most);
  if (decimals !== undefined) builder.decimals(decimals);
  if (words !== undefined) builder.mappings([wordMapping(words)]);
  queries.forEach((query, index) => builder.withTarget(target(query, letter(index), look)));
  return builder;
}

function target({ expression, legend: words }: Query, refId: string, look: Look): DataqueryBuilder {
  const built = new DataqueryBuilder().refId(refId).expr(expression).legendFormat(words).datasource(datasource);
  return isPointInTime(look) ? built.instant().format(PromQueryFormat.Table) : built.range();
}

function thresholds({ steps = [], below = 'green' }: PanelDefinition): ThresholdsConfigBuilder {
  const base: Threshold = { value: null, color: below };
  const others = steps.map(({ from, color }): Threshold => ({ value: from, color }));
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps([base, ...others]);
}

const wordMapping = (words: NonNullable<PanelDefinition['words']>): ValueMapping => ({
  type: MappingType.ValueToText,
  options: Object.fromEntries(Object.entries(words).map(([value, word], index) => [value, { ...word, index }])),
});

const legend = (hasLatest: boolean): VizLegendOptionsBuilder =>
  new VizLegendOptionsBuilder()
    .showLegend(true)
    .displayMode(LegendDisplayMode.List)
    .placement(LegendPlacement.Bottom)
    .calcs(hasLatest ? ['lastNotNull'] : []);

const tooltip = (): VizTooltipOptionsBuilder => new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi);

/** Queries of a panel are A, B, C, … */
const letter = (index: number): string => String.fromCharCode(65 + index);
