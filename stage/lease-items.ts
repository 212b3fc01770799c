/**
 * What becomes of sequences of the KV cache, by the head's word: opened, cut, ended, kept, adopted, dropped. A kept prefix has
 * a sequence behind those of the sessions; rows change hands there without being copied where that can be (`renameSequence`).
 */
import { unreachable } from '../protocol/assert.ts';
import type { AdoptItem, KeepItem, LeaseItem } from '../protocol/hop-items.ts';
import type { KeptIndex } from '../protocol/ids.ts';
import type { Engine } from './engine.ts';
import type { LeaseTable } from './lease.ts';

export interface LeaseParts {
  readonly leases: LeaseTable;
  readonly engine: Pick<Engine, 'removeSequence' | 'truncateSequence' | 'copySequence' | 'renameSequence'>;
  /** Sequences from this one on are those of kept prefixes. */
  readonly sessions: number;
}

/**
 * @returns the item as it goes on
 * @throws STAGE_PROTOCOL when it contradicts what came before
 */
export function applyLeaseItem(parts: LeaseParts, item: LeaseItem): LeaseItem {
  const { leases, engine } = parts;
  switch (item.kind) {
    case 'open':
      leases.open(item.session, item.slot);
      return item;
    case 'truncate': {
      const lease = leases.held(item.session, item.slot);
      if (item.length < lease.length) {
        engine.truncateSequence(item.slot, item.length);
        lease.length = item.length;
      }
      return item;
    }
    case 'close':
      leases.close(item.session, item.slot);
      engine.removeSequence(item.slot);
      return item;
    case 'keep':
      return kept(parts, item);
    case 'adopt':
      adopted(parts, item);
      return item;
    case 'drop':
      leases.drop(item);
      engine.removeSequence(sequenceOf(parts, item.kept));
      return item;
    default:
      return unreachable(item);
  }
}

const sequenceOf = ({ sessions }: LeaseParts, kept: KeptIndex): number => sessions + kept;

function kept(parts: LeaseParts, item: KeepItem): KeepItem {
  const { leases, engine } = parts;
  const length = leases.keep(item);
  engine.truncateSequence(item.slot, length);
  engine.renameSequence(item.slot, sequenceOf(parts, item.kept));
  return { ...item, length };
}

function adopted(parts: LeaseParts, item: AdoptItem): void {
  const { leases, engine } = parts;
  leases.adopt(item);
  const source = sequenceOf(parts, item.kept);
  if (item.takes) {
    engine.renameSequence(source, item.slot);
    engine.truncateSequence(item.slot, item.length);
  } else engine.copySequence({ source, target: item.slot, from: 0, to: item.length });
}
