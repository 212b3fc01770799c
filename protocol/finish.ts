/** Why a request ended. */
export const finishReasons = [
  /** The model ended its text (an end-of-generation token). */
  'end-of-generation',
  /** One of the request's stop strings came up. */
  'stop-string',
  /** The request's maximum of tokens is reached. */
  'length',
  /** The session's context is full. */
  'context-full',
  /** Its client cancelled it, or went away. */
  'cancelled',
  /** No token of the vocabulary continues what the grammar allows. */
  'grammar-dead-end',
  /** The tail refused its sampling options or its grammar. */
  'refused',
  /** The ring lost a stage, an agent or a link. */
  'ring-lost',
  /** The head's agent could not write its journal, so it could not give more (J8). */
  'journal-failed',
] as const;
export type FinishReason = (typeof finishReasons)[number];
