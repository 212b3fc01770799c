/** Which state a run that ended early has left a host in: pure, from what the run did there. */
import type { SwitchEnd } from './host-run.ts';
import type { PhaseName } from './phase.ts';

export type LeftState = 'untouched' | 'prepared' | 'switching' | SwitchEnd;

export interface HostTrail {
  /** Phases of which changes were made and stand. */
  readonly standing: ReadonlySet<PhaseName>;
  readonly end: SwitchEnd | null;
}

export const leftTexts: Readonly<Record<LeftState, string>> = {
  untouched: 'as before',
  prepared: 'runs what it ran before; what was prepared stays for the next run',
  switching: 'has the new files; nobody has seen yet whether its agent answers',
  answers: 'as it shall be; its agent answers',
  back: 'back at what it had before',
  between: 'neither at the former state nor at the new one: deploy again',
  removed: 'p4 is gone from it',
};

export function leftState({ standing, end }: HostTrail): LeftState {
  if (end !== null) return end;
  if (standing.has('files') || standing.has('services')) return 'switching';
  return standing.size > 0 ? 'prepared' : 'untouched';
}
