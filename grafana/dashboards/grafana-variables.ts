/** What Grafana puts in place of a query's variables before it asks Prometheus. */

export interface ChosenValues {
  /** Chosen values of the dashboard's variable, by its name; `all` where that is chosen. */
  readonly chosen: Readonly<Record<string, readonly string[] | 'all'>>;
  /** Between two points of the graph. */
  readonly stepSeconds: number;
  /** As the data source is set up. */
  readonly scrapeSeconds: number;
}

/**
 * Several values become an alternative of regular expressions, `all` the variable's `.+`. The rate's interval is that of
 * Grafana's documentation: the step and a scrape, at least four scrapes.
 */
export function substituted(expression: string, { chosen, stepSeconds, scrapeSeconds }: ChosenValues): string {
  const interval = Math.max(stepSeconds + scrapeSeconds, 4 * scrapeSeconds);
  const values = Object.entries(chosen).reduce(
    (text, [name, value]) => {
      const word = value === 'all' ? '.+' : value.length === 1 ? (value[0] ?? '') : `(${value.join('|')})`;
      return text.replaceAll(`$${name}`, word);
    },
    expression.replaceAll('$__rate_interval', `${interval}s`),
  );
  return values;
}
