/** What is wrong with a ring, where, and why, in the words of its agents. Pure. */
import type { StatusReply } from '../../protocol/messages.ts';
import type { Plan } from '../../protocol/plan.ts';
import type { HostAnswer, MergedRing } from '../status-table.ts';
import type { Look } from './look.ts';

export interface Problem {
  /** `fault`: the ring does not serve for it, or will not; `note`: it serves all the same. */
  readonly weight: 'fault' | 'note';
  /** The host; empty where it is about the ring. */
  readonly host: string;
  readonly text: string;
}

export interface Watched {
  readonly plan: Plan;
  readonly digest: string;
  readonly look: Look;
  readonly ring: MergedRing | null;
}

export function problemsOf({ plan, digest, look, ring }: Watched): readonly Problem[] {
  const fault = (host: string, text: string): Problem => ({ weight: 'fault', host, text });
  const silent = look.answers.flatMap(({ host, answer }) =>
    answer.kind === 'error' ? [fault(host, `does not answer: ${oneLine(answer.error.message)}`)] : [],
  );
  const replay = look.known.replays.get(plan.ring);
  return [
    ...silent,
    ...(ring === null ? [absent(look.answers)] : reasons(ring)),
    ...(replay === undefined
      ? []
      : [fault('', `to have it ${replay.aim === 'ready' ? 'ready again' : 'gone'}: ${replay.command}`)]),
    ...look.answers.flatMap(agentProblems),
    ...otherPlan(ring, digest),
  ];
}

/** What does not answer may well hold it. */
const absent = (answers: readonly HostAnswer[]): Problem => ({
  weight: 'fault',
  host: '',
  text: answers.every(({ answer }) => answer.kind === 'status')
    ? 'the ring is not loaded'
    : 'the ring is not loaded on the hosts that answer',
});

/** Why a part of the ring is as it is, each reason once. */
function reasons({ parts }: MergedRing): readonly Problem[] {
  const all = parts.flatMap(({ host, phase, reason, nodes }) => [
    { host, text: `${phase}: ${oneLine(reason)}`, reason },
    ...nodes.map((node) => ({
      host,
      text: `stage ${node.node} ${node.state}: ${oneLine(node.reason)}`,
      reason: node.reason,
    })),
  ]);
  return all.filter(({ reason }) => reason !== '').map(({ host, text }) => ({ weight: 'fault', host, text }));
}

function agentProblems({ host, answer }: HostAnswer): readonly Problem[] {
  if (answer.kind === 'error') return [];
  const { status } = answer;
  const problems: Problem[] = [];
  const missing = status.agent?.addressMissing ?? '';
  // A3.
  if (missing !== '') {
    const text = `its advertised address ${missing} is not its own any more: give it back, or deploy again`;
    problems.push({ weight: 'fault', host, text });
  }
  const journal = journalText(status);
  if (journal !== null) problems.push({ weight: 'fault', host, text: journal });
  if (status.samples === null) {
    problems.push({ weight: 'note', host, text: 'its agent counts nothing, so its figures are not known' });
  }
  return problems;
}

/** J8: what is admitted already goes on; nothing new is. */
function journalText({ journal }: StatusReply): string | null {
  if (journal === null || journal.state === 'open') return null;
  const why = journal.reason === '' ? '' : `: ${oneLine(journal.reason)}`;
  return `its journal is ${journal.state}${why}; nothing new is admitted until it can be written again`;
}

/** The stages drawn are the plan file's. */
function otherPlan(ring: MergedRing | null, digest: string): readonly Problem[] {
  const isOther = ring?.parts.some(({ planDigest }) => planDigest !== '' && planDigest !== digest) ?? false;
  return isOther ? [{ weight: 'note', host: '', text: 'the ring was loaded with another plan than this file' }] : [];
}

const oneLine = (text: string): string => text.replaceAll(/\s*\n\s*/g, '; ');
