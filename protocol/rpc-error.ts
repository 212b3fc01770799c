/**
 * A `P4Error` on its way through a gRPC call: its status is the code's, code and facts travel in the trailing metadata
 * `p4-code` and `p4-facts-bin` (JSON).
 *
 * What arrives was written by a peer: an unknown code becomes RPC_FAILED, and facts are taken only so far as they are of
 * the form of facts, bounded and printable.
 */
import { Metadata, status } from '@grpc/grpc-js';

import { isErrorCode, P4Error, type ErrorFacts } from './errors.ts';
import { limits } from './limits.ts';

const codeKey = 'p4-code';
const factsKey = 'p4-facts-bin';
const factsMax = 64;
const factItemsMax = 256;

/** How a call ends, in gRPC's words. */
export interface CallStatus {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

export function statusOf(error: P4Error): CallStatus {
  const metadata = new Metadata();
  metadata.set(codeKey, error.code);
  metadata.set(factsKey, encodeFacts(error.facts));
  return { code: status[error.rule.status], details: `${error.code}: ${error.rule.says}`, metadata };
}

/**
 * The error that a peer put into a status.
 * @returns `null` when there is none that this release knows: then the status came from gRPC itself, or a newer peer
 */
export function errorOf({ metadata }: Pick<CallStatus, 'metadata'>): P4Error | null {
  const [code] = metadata.get(codeKey);
  if (typeof code !== 'string' || !isErrorCode(code)) return null;
  const [facts] = metadata.get(factsKey);
  return new P4Error(code, facts instanceof Buffer ? decodeFacts(facts) : {});
}

/** What is known about a status that carries no error of p4's own. */
export function statusFacts({ code, details, metadata }: CallStatus): ErrorFacts {
  const [unknownCode] = metadata.get(codeKey);
  return {
    status: status[code],
    ...(typeof unknownCode === 'string' ? { unknownCode: printable(unknownCode) } : {}),
    details: printable(details),
  };
}

/** Foreign text, fit for a terminal and a log line. */
export function printable(text: string): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, ' ');
  return clean.length > limits.rpcDetailsLength ? `${clean.slice(0, limits.rpcDetailsLength)}…` : clean;
}

/** Facts that are too long for a header lose the ends of their lists first, then the ends of their texts. */
function encodeFacts(facts: ErrorFacts): Buffer {
  const whole = Buffer.from(JSON.stringify(facts));
  if (whole.length <= limits.rpcFactsBytes) return whole;
  for (let items = 32; items >= 1; items = Math.floor(items / 2)) {
    const bytes = Buffer.from(JSON.stringify(shortened(facts, items)));
    if (bytes.length <= limits.rpcFactsBytes) return bytes;
  }
  return Buffer.from(JSON.stringify({ shortened: 'the facts are too long to be sent' }));
}

function shortened(facts: ErrorFacts, items: number): ErrorFacts {
  const short: Record<string, ErrorFacts[string]> = {};
  for (const [name, value] of Object.entries(facts)) {
    if (typeof value === 'string') short[name] = printable(value);
    else if (typeof value !== 'object') short[name] = value;
    else if (value.length <= items) short[name] = value.map(printable);
    else short[name] = [...value.slice(0, items).map(printable), `and ${value.length - items} more`];
  }
  return short;
}

function decodeFacts(bytes: Buffer): ErrorFacts {
  if (bytes.length > limits.rpcFactsBytes) return {};
  const facts: Record<string, ErrorFacts[string]> = {};
  for (const [name, value] of Object.entries(parsedObject(bytes)).slice(0, factsMax)) {
    const fact = decodeFact(value);
    if (fact !== null && /^[A-Za-z][A-Za-z0-9]{0,63}$/.test(name)) facts[name] = fact;
  }
  return facts;
}

function decodeFact(value: unknown): ErrorFacts[string] | null {
  if (typeof value === 'string') return printableFact(value);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (!Array.isArray(value)) return null;
  const items: readonly unknown[] = value;
  return items
    .filter((item) => typeof item === 'string')
    .slice(0, factItemsMax)
    .map(printableFact);
}

/** A fact may have lines (what llama.cpp said, a list of faults), but nothing that moves a terminal's cursor. */
const printableFact = (text: string): string => text.replace(/[^\P{C}\n\t]/gu, ' ');

function parsedObject(bytes: Buffer): object {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    // Only a peer that is not p4 sends this; the code alone still says what happened.
    return {};
  }
}
