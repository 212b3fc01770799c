/**
 * What it costs to be seen: the same ring under an agent that counts nothing, under one that counts and shows it, and under
 * this while it is scraped ten times a second.
 *
 * Agents and stages are started anew several times: no two processes lie alike in memory, and what one pair differs by is
 * chance as much as anything.
 */
import { present } from '../../protocol/assert.ts';
import { LocalRings } from '../fixture/local-rings.ts';
import type { DecodeRun } from './arm.ts';
import { metricsReport, type MetricsStart } from './metrics-summary.ts';
import { withRing, type BenchPlace, type Part } from './part.ts';
import { decodeWarmUps, runRounds } from './rounds.ts';
import { Scraper } from './scraper.ts';

/** Tokens beyond the prompt and what is drawn. */
const spareTokens = 64;
const everyMs = 100;

export const metricsPart: Part = async (place) => {
  const starts: MetricsStart[] = [];
  let scrapes = 0;
  for (let start = 1; start <= place.sizes.starts; start += 1) {
    const scraper = Scraper.start();
    try {
      starts.push(
        await withAgents('off', (off) => withAgents('on', (on) => oneStart({ place, off, on, scraper, start }))),
      );
      scrapes += scraper.scrapes;
    } finally {
      await scraper.close();
    }
  }
  return metricsReport(starts, scrapes);
};

interface Start {
  readonly place: BenchPlace;
  readonly off: LocalRings;
  readonly on: LocalRings;
  readonly scraper: Scraper;
  readonly start: number;
}

async function oneStart({ place, off, on, scraper, start }: Start): Promise<MetricsStart> {
  const { rounds, tokens } = place.sizes;
  const model = await place.models.model('bench');
  const drawn = 2 * tokens;
  const ring = { model, contextTokens: drawn + spareTokens, stages: 2, agents: 1, sessions: 1 };
  const { address, metricsPort } = present(on.agents[0], 'there is an agent');
  const target = { address, port: present(metricsPort, 'the agent shows its metrics') };
  return withRing({ ...place, rings: off }, { ...ring, name: 'metrics off' }, (unseen) =>
    withRing({ ...place, rings: on }, { ...ring, name: 'metrics on' }, async (seen) => {
      const order = { prompt: [1], tokens: drawn };
      const arms = [
        { name: 'off', run: (): Promise<DecodeRun> => unseen.decode(order) },
        { name: 'on', run: (): Promise<DecodeRun> => seen.decode(order) },
        { name: 'scraped', run: () => scraper.during({ target, everyMs }, () => seen.decode(order)) },
      ];
      const what = `metrics, start ${String(start)}`;
      const found = await runRounds({ what, rounds, arms, warmUps: decodeWarmUps }, place.context);
      const runsOf = (index: number): readonly DecodeRun[] => present(found[index], 'each arm has its rounds');
      return { off: runsOf(0), on: runsOf(1), scraped: runsOf(2) };
    }),
  );
}

async function withAgents<Result>(metrics: 'on' | 'off', use: (rings: LocalRings) => Promise<Result>): Promise<Result> {
  const rings = await LocalRings.start(1, metrics);
  try {
    return await use(rings);
  } finally {
    await rings.stop();
  }
}
