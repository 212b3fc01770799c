/** What the probe program measures at one target. */
import { limits } from '../../protocol/limits.ts';
import { memberOf } from '../../protocol/plain-value.ts';
import type { BurstOutcome, ProbeTarget, ReachOutcome, UnreachableReason } from '../../protocol/probe-messages.ts';
import { sendBurst, takeBurst } from './burst.ts';
import { dial, type Dialling } from './dial.ts';
import { WireError, type Wire } from './wire.ts';

/** Connects, asks who is there, measures round trips, and sends a large frame there and back. */
export async function measureReach(target: ProbeTarget, secret: string): Promise<ReachOutcome> {
  const dialling = await dial(target, 'reach', secret);
  if (dialling.kind === 'unreachable') return dialling;
  const { wire, by, seenAs } = dialling;
  try {
    const roundTripMs = await shortestRoundTrip(wire);
    return (await isFrameBack(wire)) ? { kind: 'reached', by, seenAs, roundTripMs } : { kind: 'frame-lost', by };
  } catch (error) {
    return { kind: 'unreachable', why: faultOf(error) };
  } finally {
    wire.socket.resetAndDestroy();
  }
}

/** One burst to the target and then one from it, each over a connection of its own. */
export async function measureBurst(target: ProbeTarget, secret: string): Promise<BurstOutcome> {
  const up = await overConnection(await dial(target, 'up', secret), async (wire) => {
    await sendBurst(wire, () => wire.socket.readableLength > 0);
    const rate = memberOf(await wire.receive(limits.probeAnswerMs), 'bytesPerSecond');
    if (typeof rate !== 'number') throw new WireError('stranger');
    return rate;
  });
  if (up.kind === 'unmeasured') return up;
  const down = await overConnection(await dial(target, 'down', secret), takeBurst);
  if (down.kind === 'unmeasured') return down;
  return { kind: 'measured', upBytesPerSecond: up.rate, downBytesPerSecond: down.rate };
}

async function shortestRoundTrip(wire: Wire): Promise<number> {
  let shortestMs = Infinity;
  for (let ping = 0; ping < limits.probePings; ping += 1) {
    const sentAtMs = performance.now();
    wire.send({ say: 'ping' });
    await wire.receive(limits.probeAnswerMs);
    shortestMs = Math.min(shortestMs, performance.now() - sentAtMs);
  }
  return shortestMs;
}

/** @returns false when it is lost on the way: packets of the network's own size do not pass */
async function isFrameBack(wire: Wire): Promise<boolean> {
  wire.send({ say: 'frame' });
  wire.socket.write(Buffer.alloc(limits.probeFrameBytes));
  try {
    await wire.bytes(limits.probeFrameBytes, limits.probeFrameMs);
    return true;
  } catch (error) {
    if (error instanceof WireError) return false;
    throw error;
  }
}

type Rate =
  { readonly kind: 'rate'; readonly rate: number } | { readonly kind: 'unmeasured'; readonly why: UnreachableReason };

async function overConnection(dialling: Dialling, measure: (wire: Wire) => Promise<number>): Promise<Rate> {
  if (dialling.kind === 'unreachable') return { kind: 'unmeasured', why: dialling.why };
  try {
    return { kind: 'rate', rate: await measure(dialling.wire) };
  } catch (error) {
    return { kind: 'unmeasured', why: faultOf(error) };
  } finally {
    dialling.wire.socket.resetAndDestroy();
  }
}

function faultOf(error: unknown): UnreachableReason {
  if (error instanceof WireError) return error.fault;
  throw error;
}
