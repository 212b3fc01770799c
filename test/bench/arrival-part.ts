/** The time from token to token of a running session, before and while another session's long prompt arrives. */
import { present } from '../../protocol/assert.ts';
import { randomTokens } from '../exactness/script.ts';
import { arrivalLines, arrivalVerdicts, summarizeArrivals, type ArrivalRun } from './arrival-summary.ts';
import { withRing, type Part } from './part.ts';
import type { RingArm } from './ring-arm.ts';
import { runRounds } from './rounds.ts';

/** Tokens that the running session draws before the prompt comes: enough for a 99th percentile. */
const undisturbedTokens = 100;
/** Room of the running session, and beyond the prompt: it goes on until the prompt has its token, however fast it is. */
const spareTokens = 2048;

export const arrivalPart: Part = async (place) => {
  const { rounds, promptTokens } = place.sizes;
  const model = await place.models.model('bench');
  const contextTokens = promptTokens + undisturbedTokens + spareTokens;
  const order = { name: 'arrival', model, contextTokens, stages: 2, agents: 1, sessions: 2 };
  return withRing(place, order, async (ring) => {
    const run = (round: number): Promise<ArrivalRun> =>
      arrival(ring, { prompt: randomTokens(600 + round, promptTokens, model.vocabularySize), contextTokens });
    const arms = [{ name: 'a running session', run }];
    const found = await runRounds({ what: `a prompt of ${promptTokens} tokens arrives`, rounds, arms }, place.context);
    const figures = summarizeArrivals(present(found[0], 'there is one arm'), promptTokens);
    return { figures, blocks: [arrivalLines(figures)], verdicts: arrivalVerdicts(figures) };
  });
};

interface Arriving {
  readonly prompt: readonly number[];
  readonly contextTokens: number;
}

async function arrival(ring: RingArm, { prompt, contextTokens }: Arriving): Promise<ArrivalRun> {
  const [runner, arriving] = [await ring.open(), await ring.open()];
  let isWarm = (): void => undefined;
  const warm = new Promise<void>((resolve) => {
    isWarm = resolve;
  });
  const running = runner.keepAsking({
    prompt: [1],
    tokens: contextTokens - 1,
    onToken: (count) => {
      if (count === undisturbedTokens) isWarm();
    },
  });
  // What fails is told below.
  running.catch(() => undefined);
  await Promise.race([warm, running]);
  const { result, stages } = await ring.stagesDuring(() => arriving.ask({ prompt, tokens: 1 }));
  const { submittedMs, timesMs } = result;
  await runner.close();
  await arriving.close();
  return {
    timesMs: (await running).timesMs,
    ...{ submittedMs, answeredMs: present(timesMs[0], 'a token was drawn'), stages },
  };
}
