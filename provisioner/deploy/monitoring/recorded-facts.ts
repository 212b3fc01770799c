/** For tests: what a monitoring host answered to `monitoring-facts.ts`. */

const answer = (...lines: readonly string[]): string => [...lines, 'end', ''].join('\n');

/** Debian's package as it comes, with Grafana beside it. */
export const packagedFacts = answer(
  ...['package=installed', 'apt=present', 'candidate=2.42.0+ds-5+deb12u1', 'unit=present'],
  ...['config-path=/etc/prometheus/prometheus.yml', 'config=package', 'group=present'],
  ...['grafana=present', 'grafana-group=present'],
);

/** A host without either, whose apt knows the package. */
export const bareFacts = answer(
  ...['package=', 'apt=present', 'candidate=2.42.0+ds-5+deb12u1'],
  ...['config-path=/etc/prometheus/prometheus.yml', 'config=absent'],
);

/** A fact or more said otherwise. */
export const changedFacts = (facts: string, changes: Readonly<Record<string, string>>): string => {
  const lines = facts.split('\n').filter((line) => line !== '' && line !== 'end');
  const kept = lines.filter((line) => !Object.hasOwn(changes, line.split('=')[0] ?? ''));
  return answer(...kept, ...Object.entries(changes).map(([name, value]) => `${name}=${value}`));
};
