/** Whether a frame may be applied at all: asked before anything of it is, so that a refused frame changes nothing (G3). */
import { P4Error } from '../protocol/errors.ts';
import { requireWire, type Frame } from '../protocol/hop-frame.ts';
import type { HopItem, RowsItem } from '../protocol/hop-items.ts';
import type { Generation, NodeIndex, RingName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { WireType } from '../protocol/plan.ts';

/** Which stage of which load this is, and its bounds. */
export interface StageIdentity {
  readonly ring: RingName;
  readonly node: NodeIndex;
  readonly stages: number;
  readonly generation: Generation;
  readonly sessions: number;
  /** Kept prefixes that there may be at once. */
  readonly keptPrefixes: number;
  /** Tokens of one session. */
  readonly contextTokens: number;
}

/** What frames for this stage look like. */
export interface FrameShape {
  /** Floats of a row's hidden state; 0 on the head, which takes tokens. */
  readonly width: number;
  readonly wire: WireType;
  /** Token ids are below it; `null` on a stage that never looks at them. */
  readonly vocabularySize: number | null;
}

/** @throws GENERATION_MISMATCH; FRAME_INVALID naming the field */
export function checkFrame(frame: Frame, identity: StageIdentity, shape: FrameShape): void {
  const { ring, node } = identity;
  if (frame.generation !== identity.generation) throw new P4Error('GENERATION_MISMATCH', { ring, node });
  if (frame.destination !== node) throw invalid('destination', frame.destination);
  if (frame.rows > 0 && frame.width !== shape.width) throw invalid('width', frame.width);
  requireWire(frame, shape.wire);
  checkTokens(frame.tokens, shape);
  for (const item of frame.items) checkItem(item, identity, shape);
}

function checkTokens(tokens: ArrayLike<number>, { vocabularySize }: FrameShape): void {
  if (vocabularySize === null) return;
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index] ?? 0;
    if (token >= vocabularySize) throw invalid('token', token);
  }
}

function checkItem(item: HopItem, identity: StageIdentity, shape: FrameShape): void {
  switch (item.kind) {
    case 'rows':
      checkRows(item, identity);
      return;
    case 'begin':
      checkTokens(item.history, shape);
      checkTokens(item.drawn, shape);
      return;
    case 'token':
      // The tail makes them for the head's agent; no stage gets one.
      throw invalid('item kind', item.request);
    case 'open':
    case 'adopt':
    case 'truncate':
    case 'end':
    case 'close':
    case 'keep':
    case 'drop':
    case 'failed':
    case 'probe':
      return;
  }
}

function checkRows({ rowCount, firstPosition, phase, samples }: RowsItem, { contextTokens }: StageIdentity): void {
  if (rowCount < 1 || rowCount > limits.cpuDecodeRows) throw invalid('row count', rowCount);
  if (firstPosition + rowCount > contextTokens) throw invalid('position', firstPosition + rowCount - 1);
  if (phase === 'recompute' && samples) throw invalid('recomputed rows that sample', rowCount);
}

const invalid = (field: string, found: number): P4Error => new P4Error('FRAME_INVALID', { field, found });
