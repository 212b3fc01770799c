/**
 * Every failure a user or another process can meet, by a stable code.
 *
 * Nobody matches on message text: code, exit status and gRPC status are looked up here. A code is never reused for
 * another meaning.
 */

import { deployCodes } from './error-codes-deploy.ts';
import { journalCodes } from './error-codes-journal.ts';
import { modelCodes } from './error-codes-model.ts';
import { networkCodes } from './error-codes-network.ts';
import { operatorCodes } from './error-codes-operator.ts';
import { ringCodes } from './error-codes-ring.ts';
import { sshCodes } from './error-codes-ssh.ts';
import { stageCodes } from './error-codes-stage.ts';
import type { CodeRule } from './error-rule.ts';

export const errorCodes = {
  ...operatorCodes,
  ...deployCodes,
  ...modelCodes,
  ...stageCodes,
  ...ringCodes,
  ...networkCodes,
  ...journalCodes,
  ...sshCodes,
} as const satisfies Record<string, CodeRule>;

export type ErrorCode = keyof typeof errorCodes;

/** What a reader needs to see the case: plain values, never a prompt, never a generation (G4). */
export type ErrorFacts = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** A failure outside this code's power: a wrong file, a refusing peer, a full disk. A bug is an assertion instead. */
export class P4Error extends Error {
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, facts: ErrorFacts = {}, cause?: unknown) {
    super(sentence(code, facts), cause === undefined ? undefined : { cause });
    this.name = 'P4Error';
    this.code = code;
    this.facts = facts;
  }

  get rule(): CodeRule {
    return errorCodes[this.code];
  }
}

export const isErrorCode = (text: string): text is ErrorCode => Object.hasOwn(errorCodes, text);

function sentence(code: ErrorCode, facts: ErrorFacts): string {
  const rule = errorCodes[code];
  const named = Object.entries(facts).map(
    ([name, value]) => `${name}: ${Array.isArray(value) ? listText(value) : String(value)}`,
  );
  return [`${code}: ${rule.says}`, ...named.map((fact) => `  ${fact}`), `  ${rule.remedy}`].join('\n');
}

/** Words stand on one line; sentences (one per fault of a plan, say) each on their own. */
const listText = (values: readonly string[]): string =>
  values.some((value) => value.includes(' ')) ? values.map((value) => `\n    ${value}`).join('') : values.join(', ');
