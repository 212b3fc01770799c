/**
 * What a scrape says is what happened: after a known workload its counts are those of tokens read, receipts and status, to
 * the unit; nothing secret is in it; and nobody who asks, however, holds up a ring.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, suite, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { admissionLimitBytes } from '../../agent/journal/database-limit.ts';
import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { hostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { SettledStage } from '../../protocol/messages.ts';
import type { Appearance } from '../../protocol/metric-definition.ts';
import { metricNames, metricTable } from '../../protocol/metric-table.ts';
import { eventually } from '../fixture/eventually.ts';
import type { Answer, LoadedRing } from '../fixture/loaded-ring.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import { Scrape } from '../fixture/scrape.ts';

const hosts = ['local', 'local-2'] as const;
const story = 'Once upon a time there was a metric';
const beginning = Array.from({ length: 40 }, (_none, row) => 300 + row);
/** Metrics that this machine need not have, or not so soon. */
const mayBeMissing = new Set<Appearance>(['pressure', 'gpu', 'first-hour']);
const contextTokens = 256;

let agents: LocalAgents;
let ring: LoadedRing;

const place = (host: string) => present(agents.agent(host).metrics, 'the agent shows its metrics');

/** A collection that began after this was called. */
async function scrape(host: string, accept?: string): Promise<Scrape> {
  await pause(limits.metricCacheMs);
  return Scrape.of(place(host), accept);
}

before(async () => {
  agents = await LocalAgents.start(hosts.length);
  const stages = [
    ['local', '0-1'],
    ['local-2', '2-4'],
    ['local', '5-7'],
  ] as const;
  ring = await agents.load({ ring: 'counted', stages, decode: 'exact', context: contextTokens });
});
after(() => agents.stop());

suite('after a known workload', () => {
  const answers: Answer[] = [];
  let head: Scrape;
  let other: Scrape;
  const receipts = (): readonly SettledStage[] => answers.flatMap(({ settlement }) => settlement.stages);
  const rowsOf = (rows: 'prefilled' | 'decoded' | 'padding', node: number): number =>
    receipts().reduce((sum, receipt) => sum + (receipt.node === node ? receipt[rows] : 0), 0);

  before(async () => {
    const held = await ring.open();
    answers.push(await ring.ask(held.session, { prompt: story, maxTokens: 20, ignoreEnd: true }));
    answers.push(await ring.ask(held.session, { prompt: ' and then', maxTokens: 5, ignoreEnd: true }));
    answers.push(...(await Promise.all([3, 4].map((maxTokens) => ring.askAlone({ prompt: story, maxTokens })))));
    answers.push(await ring.askAlone({ prompt: story, maxTokens: 2 * contextTokens, ignoreEnd: true }));
    const cancelled = await ring.submit(held.session, { prompt: ' but', maxTokens: 200, ignoreEnd: true });
    const heard = ring.hear(held.session, cancelled);
    await ring.cancel(held.session, cancelled);
    answers.push(await heard);
    await assert.rejects(ring.askAlone({ prompt: Array<number>(contextTokens + 1).fill(5) }), isTooLong);
    await held.letGo();
    for (const maxTokens of [2, 3]) {
      const alike = await ring.calls.openSession(ring.signal, { cacheKey: 'counted' });
      answers.push(await ring.ask(alike.session, { prompt: beginning, maxTokens, ignoreEnd: true }));
      await alike.letGo();
      await ring.untilEmpty();
    }
    await eventually(
      async () => {
        head = await scrape('local');
        return head.value('p4_ring_requests_settled_total') === answers.length;
      },
      { what: 'every request is settled in the metrics' },
    );
    other = await scrape('local-2');
  });

  test('tokens, requests and their ends are those that clients saw', () => {
    const tokens = answers.reduce((sum, answer) => sum + answer.tokens.length, 0);
    assert.equal(head.value('p4_ring_generated_tokens_total'), tokens);
    assert.equal(head.value('p4_ring_requests_admitted_total'), answers.length);
    for (const reason of new Set(answers.map(({ end }) => end.reason))) {
      const count = answers.filter(({ end }) => end.reason === reason).length;
      assert.equal(head.value('p4_ring_requests_finished_total', { reason }), count, reason);
    }
    assert.equal(head.sum('p4_ring_requests_finished_total'), answers.length);
    assert.equal(head.value('p4_ring_requests_finished_total', { reason: 'cancelled' }), 1);
    assert.equal(head.value('p4_ring_requests_finished_total', { reason: 'context-full' }), 1);
    assert.equal(head.value('p4_rpc_failures_total', { method: 'Outer.Submit', code: 'PROMPT_TOO_LONG' }), 1);
  });

  test('rows of every stage are those of the receipts, and the ring’s are those of its head', () => {
    for (const [node, shown] of [head, other, head].entries()) {
      const rows = (phase: string): number => shown.value('p4_stage_rows_total', { stage: String(node), phase });
      assert.equal(rows('prefill'), rowsOf('prefilled', node));
      assert.equal(rows('decode'), rowsOf('decoded', node));
      assert.equal(rows('recompute'), 0);
      assert.equal(shown.value('p4_stage_kv_cells_used', { stage: String(node) }), 0);
      assert.equal(shown.value('p4_stage_kv_cells_kept', { stage: String(node) }), beginning.length + 2);
      assert.equal(shown.value('p4_stage_kv_cells_limit', { stage: String(node) }), 4 * contextTokens);
    }
    assert.equal(head.value('p4_ring_prompt_tokens_total'), rowsOf('prefilled', 0));
    const reused = receipts().reduce((sum, receipt) => sum + (receipt.node === 0 ? receipt.reused : 0), 0);
    assert.ok(reused > 0);
    assert.equal(head.value('p4_ring_reused_tokens_total'), reused);
    assert.equal(head.value('p4_ring_adopted_tokens_total'), beginning.length - 1);
  });

  test('times are counted once for each request and token, and add up', () => {
    const spoke = answers.filter(({ tokens }) => tokens.length > 0).length;
    const tokens = answers.reduce((sum, answer) => sum + answer.tokens.length, 0);
    const counts = {
      p4_ring_time_to_first_token_seconds: spoke,
      p4_ring_inter_token_seconds: tokens - spoke,
      p4_ring_request_duration_seconds: answers.length,
    };
    for (const [name, count] of Object.entries(counts)) {
      assert.equal(head.value(`${name}_count`), count, name);
      assert.equal(head.value(`${name}_bucket`, { le: '+Inf' }), count, name);
      const buckets = head.all(`${name}_bucket`).map(({ value }) => value);
      assert.deepEqual(
        buckets,
        buckets.toSorted((one, another) => one - another),
        name,
      );
    }
    const inRequests = head.value('p4_ring_request_seconds_total');
    const active = head.value('p4_ring_active_seconds_total');
    const durations = head.value('p4_ring_request_duration_seconds_sum');
    assert.ok(Math.abs(inRequests - durations) < 0.05, `${String(inRequests)} and ${String(durations)} seconds`);
    assert.ok(active > 0 && active < inRequests, 'two ran side by side');
    const firsts = head.value('p4_ring_time_to_first_token_seconds_sum');
    // A first token counts when it may be read: it may have waited for a commit from when it was drawn.
    const waited = (head.value('p4_ring_time_to_first_token_seconds_count') * limits.journalGatherMs) / 1000;
    assert.ok(firsts + head.value('p4_ring_inter_token_seconds_sum') <= durations + waited + 0.05);
    assert.ok(head.value('p4_ring_queue_seconds_sum') <= firsts);
    assert.ok(head.value('p4_stage_compute_seconds_total', { stage: '0' }) < active);
  });

  test('a link has sent what its receiver has received, and held it no longer than it took', () => {
    const [outward, homeward] = [{ source: '0' }, { source: '1' }];
    for (const [ends, from, to] of [
      [outward, head, other],
      [homeward, other, head],
    ] as const) {
      for (const what of ['frames', 'bytes'])
        assert.equal(from.value(`p4_link_sent_${what}_total`, ends), to.value(`p4_link_received_${what}_total`, ends));
      const frames = from.value('p4_link_sent_frames_total', ends);
      assert.equal(from.value('p4_link_acknowledgement_seconds_count', ends), frames);
      assert.equal(from.value('p4_link_unacknowledged_frames', ends), 0);
      assert.equal(from.value('p4_link_up', ends), 1);
      const [took, held] = [
        from.value('p4_link_acknowledgement_seconds_sum', ends),
        to.value('p4_link_held_seconds_total', ends),
      ];
      assert.ok(held > 0 && held < took, `held ${String(held)} of ${String(took)} seconds`);
    }
  });

  test('the journal’s figures are those of status', async () => {
    const { journal } = await agents.status('local');
    assert.equal(head.value('p4_journal_records'), Number(journal?.records));
    assert.equal(head.value('p4_journal_committed_records_total'), Number(journal?.records));
    assert.equal(head.value('p4_journal_bytes'), Number(journal?.bytes));
    assert.equal(head.value('p4_journal_up'), 1);
    assert.ok(head.value('p4_journal_commit_seconds_count') > 0);
    assert.equal(head.value('p4_journal_limit_bytes'), admissionLimitBytes(limits.journalLeastBytes));
  });

  test('every metric of the table is shown, and no other', () => {
    const shown = [head, other].map(({ names }) => names);
    assert.deepEqual(
      shown.flatMap(({ unknown }) => unknown),
      [],
    );
    const known = new Set(shown.flatMap((names) => [...names.known]));
    const missing = metricNames.filter((name) => !known.has(name) && !mayBeMissing.has(metricTable[name].appears));
    assert.deepEqual(missing, []);
  });

  test('types and helps are the table’s, and each series is shown once', () => {
    for (const { text, names } of [head, other]) {
      for (const name of names.known) {
        const { type, help } = metricTable[name];
        assert.ok(text.includes(`# HELP ${name} ${help}\n# TYPE ${name} ${type === 'info' ? 'gauge' : type}\n`), name);
      }
      const lines = text.split('\n').filter((line) => line !== '');
      assert.equal(new Set(lines.map((line) => line.replace(/ \S+$/, ''))).size, lines.length);
    }
  });

  test('OpenMetrics says the same to who asks for it', async () => {
    const open = await scrape('local', 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5');
    assert.ok(open.text.endsWith('\n# EOF\n'));
    assert.ok(open.text.includes('# TYPE p4_ring_generated_tokens counter\n'));
    // Ten seconds more may have told how fast the first hour is.
    const shown = ({ names }: Scrape): readonly string[] =>
      [...names.known].filter((name) => metricTable[name].appears !== 'first-hour').sort();
    assert.deepEqual(shown(open), shown(head));
    const name = 'p4_ring_generated_tokens_total';
    assert.equal(open.value(name), head.value(name));
  });

  test('neither a generation nor a load, a prompt, a token or a path is in it (G4)', async () => {
    const { rings } = await agents.status('local');
    for (const { text } of [head, other]) {
      for (const secret of [ring.generation.toString(), ring.generation.toString(16), rings[0]?.loadId ?? 'none'])
        assert.ok(!text.includes(secret), secret);
      assert.ok(!text.includes('metric') || !text.includes('small grey'));
      assert.ok(!text.includes(agents.state.root));
      assert.doesNotMatch(text, /"[^"]*Once upon/);
    }
  });
});

const isTooLong = (error: unknown): boolean => error instanceof P4Error && error.code === 'PROMPT_TOO_LONG';

suite('a ring that lost a stage', () => {
  test('is told of as not ready, then as recovered, with the rows that ran again', async () => {
    const { address, port } = place('local-2');
    const ready = async (): Promise<number> => (await fetch(`http://${address}:${String(port)}/readyz`)).status;
    assert.equal(await ready(), 200);
    const held = await ring.open();
    const request = await ring.submit(held.session, { prompt: story, maxTokens: 120, ignoreEnd: true });
    const heard = ring.hear(held.session, request);
    const stage = await ring.node(1);
    process.kill(stage.pid, 'SIGSTOP');
    const begin = performance.now();
    const hanging = await scrape('local-2');
    assert.ok(performance.now() - begin < 3_000, 'a scrape does not wait for a stage that hangs');
    assert.ok(hanging.value('p4_stage_report_age_seconds', { stage: '1' }) > 0.5);
    process.kill(stage.pid, 'SIGKILL');
    await eventually(async () => (await ready()) === 503, { what: 'the agent is not ready' });
    const { settlement, tokens } = await heard;
    await eventually(async () => (await ready()) === 200, { what: 'the agent is ready again' });
    const [head, other] = [await scrape('local'), await scrape('local-2')];
    assert.equal(tokens.length, 120);
    assert.equal(other.value('p4_stage_restarts_total', { stage: '1' }), 1);
    assert.equal(head.sum('p4_stage_restarts_total'), 0);
    for (const shown of [head, other]) {
      assert.equal(shown.value('p4_ring_suspensions_total'), 1);
      assert.equal(shown.value('p4_ring_recoveries_total'), 1);
      assert.ok(shown.value('p4_ring_suspended_seconds_total') > 0);
      assert.equal(shown.value('p4_ring_ready'), 1);
    }
    const recomputed = settlement.stages.find(({ node }) => node === 1)?.recomputed;
    assert.equal(other.value('p4_stage_rows_total', { stage: '1', phase: 'recompute' }), recomputed);
    await held.letGo();
  });

  test('leaves nothing behind that counts after it is unloaded', async () => {
    const other = await agents.load({ ring: 'brief', stages: [['local', '0-7']] });
    assert.ok((await scrape('local')).all('p4_ring_ready', { ring: 'brief' }).length === 1);
    const at = { ring: other.name, generation: other.generation.toString() };
    await agents.fleet.client(hostName('local')).call(['Agent', 'Unload'], at, { deadlineMs: limits.unloadMs });
    assert.deepEqual(
      (await scrape('local')).series.filter(({ labels }) => labels['ring'] === 'brief'),
      [],
    );
  });
});

suite('whoever asks', () => {
  const raw = (text: string): Promise<string> =>
    new Promise((resolve) => {
      const { address, port } = place('local');
      let said = '';
      const socket = connect(port, address, () => socket.write(text));
      socket.setEncoding('latin1').on('data', (more: string) => (said += more));
      socket
        .on('error', () => undefined)
        .on('close', () => {
          resolve(said);
        });
    });

  test('gets these three pages and no other, by GET and HEAD alone', async () => {
    const { address, port } = place('local');
    const answer = (path: string, method = 'GET') => fetch(`http://${address}:${String(port)}${path}`, { method });
    assert.equal(await (await answer('/healthz')).text(), 'ok\n');
    assert.match(await (await answer('/readyz')).text(), /^ready\ncounted: ready\n$/);
    assert.equal((await answer('/')).status, 404);
    assert.equal((await answer('/metrics', 'DELETE')).status, 405);
    const head = await answer('/metrics', 'HEAD');
    assert.ok(Number(head.headers.get('content-length')) > 1000);
  });

  test('is cut off where it sends a body, a long header, requests without waiting, or no HTTP', async () => {
    const get = 'GET /metrics HTTP/1.1\r\nHost: a\r\n';
    assert.equal(await raw(`POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789`), '');
    assert.equal(await raw(`${get}X: ${'x'.repeat(2 * limits.metricHeaderBytes)}\r\n\r\n`), '');
    assert.equal(await raw(`${get}\r\n`.repeat(500)), '');
    assert.equal(await raw('\u0016\u0003\u0001\u0002\u0000 no http'), '');
  });

  test('does not hold up a token, however many ask however often', async () => {
    const { address, port } = place('local');
    const ended = new AbortController();
    const sockets = Array.from({ length: 3 * limits.metricConnections }, () => connect(port, address));
    for (const socket of sockets) socket.on('error', () => undefined);
    const flood = Array.from({ length: 8 }, async () => {
      while (!ended.signal.aborted)
        await fetch(`http://${address}:${String(port)}/metrics`, { signal: ended.signal }).then(
          (response) => response.text(),
          () => pause(1),
        );
    });
    const answer = await ring.askAlone({ prompt: story, maxTokens: 60, ignoreEnd: true });
    assert.equal(answer.tokens.length, 60);
    ended.abort();
    for (const socket of sockets) socket.destroy();
    await Promise.allSettled(flood);
    assert.equal((await scrape('local')).value('p4_agent_ready'), 1);
  });
});
