/**
 * Questions to the Prometheus of a host, over a connection that the host itself makes: it may listen on loopback alone, and
 * the host need not have a program that asks.
 */
import { request, type IncomingMessage } from 'node:http';

import { P4Error } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { monitoringLimits } from '../../../protocol/monitoring-limits.ts';
import type { NetAddress } from '../../../protocol/net-address.ts';
import { itemsOf, memberOf } from '../../../protocol/plain-value.ts';
import type { Session } from '../../ssh/session.ts';

export interface PrometheusAccess {
  readonly session: Session;
  readonly port: number;
  readonly signal: AbortSignal;
}

/** A target as Prometheus has it. */
export interface ScrapedTarget {
  /** The label `host`. */
  readonly host: string;
  /** As it was written down: `192.0.2.11:7401`. */
  readonly address: string;
  readonly health: 'up' | 'down' | 'unknown';
  /** What went wrong the last time; empty for nothing. */
  readonly lastError: string;
}

/** `null` when it is ready, else why it is not. @throws SSH_FORWARDING_REFUSED, HOST_LOST, CANCELLED */
export async function readiness(access: PrometheusAccess): Promise<string | null> {
  const answer = await asked(access, '/-/ready');
  if (answer.kind === 'none') return answer.why;
  return answer.status === 200 ? null : answer.text.trim();
}

/** The targets of a job; `null` where it does not tell. @throws as `readiness` */
export async function targetsOf(access: PrometheusAccess, job: string): Promise<readonly ScrapedTarget[] | null> {
  const answer = await asked(access, '/api/v1/targets?state=active');
  if (answer.kind === 'none' || answer.status !== 200) return null;
  return parseTargets(answer.text, job);
}

/** @returns `null` for what is no answer of Prometheus */
export function parseTargets(text: string, job: string): readonly ScrapedTarget[] | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (memberOf(value, 'status') !== 'success') return null;
  return itemsOf(memberOf(memberOf(value, 'data'), 'activeTargets')).flatMap((target) => {
    const labels = memberOf(target, 'labels');
    if (memberOf(labels, 'job') !== job) return [];
    const health = memberOf(target, 'health');
    return [
      {
        host: textOf(memberOf(labels, 'host')),
        address: textOf(memberOf(memberOf(target, 'discoveredLabels'), '__address__')),
        health: health === 'up' || health === 'down' ? health : 'unknown',
        lastError: textOf(memberOf(target, 'lastError')),
      },
    ];
  });
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

type Answer =
  | { readonly kind: 'answer'; readonly status: number; readonly text: string }
  | { readonly kind: 'none'; readonly why: string };

async function asked({ session, port, signal }: PrometheusAccess, path: string): Promise<Answer> {
  const at: NetAddress = { address: '127.0.0.1', port };
  try {
    const connection = await session.forward(at, signal);
    try {
      const late = AbortSignal.any([signal, AbortSignal.timeout(limits.answerMs)]);
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const asking = request({ createConnection: () => connection, host: at.address, port, path, signal: late });
        asking.once('response', resolve).once('error', reject).end();
      });
      return { kind: 'answer', status: response.statusCode ?? 0, text: await bodyOf(response) };
    } finally {
      connection.destroy();
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof P4Error && error.code !== 'AGENT_UNREACHABLE') throw error;
    return { kind: 'none', why: error instanceof P4Error ? String(error.facts['why']) : reasonOf(error) };
  }
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    const bytes = Buffer.from(chunk as Uint8Array);
    size += bytes.length;
    if (size > monitoringLimits.answerBytes) throw new Error('an answer without end');
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
