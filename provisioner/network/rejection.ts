/** Why an address is not advertised: the kinds of reasons, and their words. */
import type { HostName } from '../../protocol/ids.ts';
import type { UnreachableReason } from '../../protocol/probe-messages.ts';
import { bytesText } from '../text-table.ts';

export type Rejection =
  | { readonly kind: 'loopback' }
  /** Others are there. */
  | { readonly kind: 'link-local' }
  | { readonly kind: 'down' }
  | { readonly kind: 'not-listening'; readonly why: string }
  /** The host will give it up by itself. */
  | { readonly kind: 'passing'; readonly flag: 'deprecated' | 'temporary' | 'tentative' }
  /** It looks like one that moves from host to host. */
  | { readonly kind: 'virtual' }
  | { readonly kind: 'shared'; readonly hosts: readonly HostName[] }
  | { readonly kind: 'answered-by'; readonly from: HostName; readonly by: HostName }
  | { readonly kind: 'frame-lost'; readonly from: readonly HostName[] }
  | { readonly kind: 'unreachable'; readonly from: readonly Unreached[] }
  | { readonly kind: 'not-tried'; readonly from: readonly HostName[] }
  | { readonly kind: 'slower'; readonly bytesPerSecond: number; readonly chosenBytesPerSecond: number }
  /** No slower than the chosen one by enough to matter. */
  | { readonly kind: 'no-faster'; readonly chosen: string }
  | { readonly kind: 'not-wanted'; readonly wanted: string };

/** A host from which an address cannot be used. */
export interface Unreached {
  readonly host: HostName;
  readonly why: UnreachableReason;
}

const reasonWords: Readonly<Record<UnreachableReason, string>> = {
  refused: 'refused',
  'timed-out': 'no answer',
  'no-route': 'no route',
  stranger: 'something else answers',
  closed: 'broken off',
  failed: 'failed',
};

export function rejectionText(rejection: Rejection): string {
  switch (rejection.kind) {
    case 'loopback':
      return 'loopback: only the host itself reaches it';
    case 'link-local':
      return 'link-local, and others are there';
    case 'down':
      return 'its link is down';
    case 'not-listening':
      return `cannot listen there: ${rejection.why}`;
    case 'passing':
      return `${rejection.flag}: the host will give it up`;
    case 'virtual':
      return 'looks like a virtual address that moves between hosts';
    case 'shared':
      return `shared by ${listed(rejection.hosts)}`;
    case 'answered-by':
      return `answered by ${rejection.by} when ${rejection.from} connects`;
    case 'frame-lost':
      return `large packets are lost from ${listed(rejection.from)} (MTU)`;
    case 'unreachable':
      return `not reachable from ${listed(rejection.from.map(unreachedText))}`;
    case 'not-tried':
      return `not measured from ${listed(rejection.from)}`;
    case 'slower':
      return `slower: ${rateText(rejection.bytesPerSecond)}, the chosen one ${rateText(rejection.chosenBytesPerSecond)}`;
    case 'no-faster':
      return `not faster than ${rejection.chosen}`;
    case 'not-wanted':
      return `the inventory wants ${rejection.wanted}`;
  }
}

export const unreachedText = ({ host, why }: Unreached): string => `${host} (${reasonWords[why]})`;

export const rateText = (bytesPerSecond: number): string => `${bytesText(bytesPerSecond)}/s`;

/** `ant`, `ant and bee`, `ant, bee and cow`; of many the first few. */
export function listed(items: readonly string[]): string {
  const shown = items.length > 6 ? [...items.slice(0, 5), `${items.length - 5} more`] : items;
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1) ?? ''}`;
}
