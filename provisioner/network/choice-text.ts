/** Why an address was chosen, in words, and the table of a whole decision. */
import { tableLines, type Column } from '../text-table.ts';
import type { AddressChoice, ChoiceReason, HostDecision } from './address-choice.ts';
import { rateText, rejectionText } from './rejection.ts';

export function choiceText(reason: ChoiceReason): string {
  switch (reason.kind) {
    case 'fastest-network':
      return `in ${reason.network}, the fastest network that all hosts share (at least ${rateText(reason.slowest.bytesPerSecond)})`;
    case 'fastest-of-host':
      return `the fastest that all others reach (at least ${rateText(reason.slowest.bytesPerSecond)})`;
    case 'kept':
      return `as before; nothing is clearly faster (at least ${rateText(reason.slowest.bytesPerSecond)})`;
    case 'wanted':
      return `the inventory wants ${reason.wanted}${reason.slowest === null ? '' : ', and all others reach it'}`;
    case 'alone':
      return reason.isSshAddress ? 'the only host; where ssh reaches it' : 'the only host';
  }
}

const left = (title: string): Column => ({ title, align: 'left' });
const columns = [left('HOST'), left('ADDRESS'), left('INTERFACE'), left(''), left('WHY')];

/** A row for each address of each host, the chosen one first. */
export const addressTable = ({ decisions }: AddressChoice): readonly string[] =>
  tableLines(columns, decisions.flatMap(hostRows));

function hostRows({ host, chosen, rejected }: HostDecision): readonly (readonly string[])[] {
  const rows = [
    chosen === null
      ? ['', '', 'NONE', 'no address serves']
      : [chosen.address, chosen.interface, 'chosen', choiceText(chosen.reason)],
    ...rejected.map((each) => [each.address, each.interface, 'rejected', rejectionText(each.rejection)]),
  ];
  return rows.map((row, index) => [index === 0 ? host : '', ...row]);
}
