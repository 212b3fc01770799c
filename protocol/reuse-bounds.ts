/** The bounds of what ended sessions leave for those that begin alike, a part of `limits.ts`. */
export const reuseBounds = {
  /** Ended sessions that a ring keeps, unless its plan says how many. */
  defaultKeptPrefixes: 8,
  /** Rows from which a shared beginning is kept and adopted: a quarter of a chunk. Fewer would push out longer ones. */
  adoptedRowsLeast: 16,
  /** Bytes of a session's cache key: the name of a user or of a conversation. */
  cacheKeyBytes: 256,
};
