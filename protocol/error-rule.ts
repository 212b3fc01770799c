/** What is known of an error by its code. */

/** How a code leaves a process: the exit status of a command and the gRPC status of a call. */
export interface CodeRule {
  /** 2: the input is wrong; 3: the fleet refused; 4: something outside failed; 5: cancelled. */
  readonly exit: 2 | 3 | 4 | 5;
  /** Name of the gRPC status. */
  readonly status: GrpcStatusName;
  /** One sentence: what happened. */
  readonly says: string;
  /** One sentence: what to do about it. */
  readonly remedy: string;
}

export type GrpcStatusName =
  | 'INVALID_ARGUMENT'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'PERMISSION_DENIED'
  | 'FAILED_PRECONDITION'
  | 'RESOURCE_EXHAUSTED'
  | 'ABORTED'
  | 'UNAVAILABLE'
  | 'CANCELLED'
  | 'DEADLINE_EXCEEDED'
  | 'INTERNAL';
