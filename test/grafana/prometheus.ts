/** For tests: a real Prometheus, of Debian's package, as a process of its own that scrapes agents of this machine. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { stringify } from 'yaml';

import type { NetAddress } from '../../protocol/net-address.ts';
import { eventually } from '../fixture/eventually.ts';
import type { Credentials } from '../../provisioner/pki.ts';

export interface PrometheusOrder {
  /** Where it keeps everything. */
  readonly folder: string;
  readonly scrapeSeconds: number;
  /** Texts of rule files by name. */
  readonly rules: Readonly<Record<string, string>>;
  /** Where the agents of hosts show their metrics. */
  readonly targets: ReadonlyMap<string, NetAddress>;
  /** Paths of what it shows agents of other hosts; plain HTTP if absent. */
  readonly credentials?: Credentials['paths'];
}

export interface ApiSeries {
  readonly metric: Readonly<Record<string, string>>;
  /** Times and values, as texts. */
  readonly values: readonly (readonly [number, string])[];
}

interface RuleState {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
}

type Child = ChildProcessByStdio<null, null, Readable>;

export class Prometheus {
  readonly #child: Child;
  readonly #origin: string;
  readonly #log: readonly string[];

  private constructor(child: Child, origin: string, log: readonly string[]) {
    this.#child = child;
    this.#origin = origin;
    this.#log = log;
  }

  static async start(order: PrometheusOrder): Promise<Prometheus> {
    const { folder } = order;
    const config = join(folder, 'prometheus.yml');
    writeConfig(config, order);
    const words = [`--config.file=${config}`, `--storage.tsdb.path=${join(folder, 'series')}`];
    const child = spawn('prometheus', [...words, '--web.listen-address=127.0.0.1:0'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const log: string[] = [];
    const address = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stderr }).on('line', (line) => {
        log.push(line);
        const found = /msg="Listening on" address=(\S+)/.exec(line)?.[1];
        if (found !== undefined) resolve(found);
      });
      child.once('error', reject);
      child.once('exit', () => {
        reject(new Error(`Prometheus ended:\n${log.join('\n')}`));
      });
    });
    const origin = `http://${address}`;
    // It listens before it has read what it keeps.
    await eventually(async () => (await fetch(`${origin}/-/ready`)).ok, {
      what: 'Prometheus is ready',
      withinMs: 30_000,
    });
    return new Prometheus(child, origin, log);
  }

  /** The latest values. */
  async query(expression: string): Promise<readonly ApiSeries[]> {
    return seriesOf(await this.#get('query', { query: expression }));
  }

  /** Over the last seconds, a value each. */
  async queryRange(expression: string, seconds: number): Promise<readonly ApiSeries[]> {
    const now = Date.now() / 1000;
    const range = { start: String(now - seconds), end: String(now), step: '1' };
    return seriesOf(await this.#get('query_range', { query: expression, ...range }));
  }

  /** All rules that it evaluates, and how that went. */
  async rules(): Promise<readonly RuleState[]> {
    // Prometheus documents these fields.
    const { groups } = (await this.#get('rules', {})) as { groups: readonly { rules: readonly RuleState[] }[] };
    return groups.flatMap(({ rules }) => rules);
  }

  /** Names of the alerts that fire. */
  async firing(): Promise<readonly string[]> {
    const series = await this.query('ALERTS{alertstate="firing"}');
    return [...new Set(series.map(({ metric }) => metric['alertname'] ?? ''))].sort();
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exit;
  }

  async #get(call: string, parameters: Readonly<Record<string, string>>): Promise<unknown> {
    const response = await fetch(`${this.#origin}/api/v1/${call}?${new URLSearchParams(parameters).toString()}`).catch(
      (error: unknown) => {
        throw new Error(`Prometheus does not answer:\n${this.#log.slice(-5).join('\n')}`, { cause: error });
      },
    );
    const reply = (await response.json()) as { status: string; error?: string; data: unknown };
    assert.equal(reply.status, 'success', `${reply.error ?? ''}: ${parameters['query'] ?? call}`);
    return reply.data;
  }
}

function writeConfig(path: string, order: PrometheusOrder): void {
  const { folder, scrapeSeconds, rules, targets, credentials } = order;
  const ruleFolder = join(folder, 'rules');
  mkdirSync(ruleFolder);
  for (const [name, text] of Object.entries(rules)) writeFileSync(join(ruleFolder, name), text);
  const seconds = `${String(scrapeSeconds)}s`;
  const targetFile = join(folder, 'targets.json');
  const found = [...targets].map(([host, { address, port }]) => ({
    targets: [`${address}:${String(port)}`],
    labels: { host },
  }));
  writeFileSync(targetFile, JSON.stringify(found));
  const tls =
    credentials === undefined
      ? {}
      : {
          scheme: 'https',
          tls_config: {
            ca_file: credentials.authority,
            cert_file: credentials.certificate,
            key_file: credentials.key,
          },
        };
  const config = {
    global: { scrape_interval: seconds, scrape_timeout: seconds, evaluation_interval: seconds },
    rule_files: [join(ruleFolder, '*.yml')],
    scrape_configs: [{ job_name: 'p4', ...tls, file_sd_configs: [{ files: [targetFile] }] }],
  };
  writeFileSync(path, stringify(config));
}

/** Vectors have one value a series, matrices many, and a scalar is one series without labels. */
function seriesOf(data: unknown): readonly ApiSeries[] {
  const { resultType, result } = data as { resultType: string; result: unknown };
  if (resultType === 'scalar') return [{ metric: {}, values: [result as [number, string]] }];
  type Raw = { metric: ApiSeries['metric']; value?: [number, string]; values?: ApiSeries['values'] };
  return (result as readonly Raw[]).map(({ metric, value, values }) => ({
    metric,
    values: values ?? (value === undefined ? [] : [value]),
  }));
}
