/** The guards of a deadline's clock (R1, R4). */
import type { Mutation } from './mutation.ts';

export const deadlineMutations: readonly Mutation[] = [
  {
    name: 'a stage that loads puts the deadline off (R1)',
    file: 'agent/step-timers.js',
    guard: 'loadsStages(ring) ? deadlineMs : ',
    instead: '',
  },
  {
    name: 'the deadline counts from the last sign (R1)',
    file: 'agent/step-timers.js',
    guard: 'input.atMs - suspension.progressMs',
    instead: 'input.atMs - suspension.sinceMs',
  },
  {
    name: 'a stage that has loaded is a sign (R1)',
    file: 'agent/step-stage.js',
    guard: 'hasLoaded ? progressed(ring, atMs) : ring',
    instead: 'ring',
  },
  {
    name: 'a stage that did load is a sign (R1)',
    file: 'agent/step-stage.js',
    guard: 'loadsStages(ring) ? progressed(ring, atMs) : ring',
    instead: 'ring',
  },
  {
    name: 'a neighbour that loads is a sign (R1)',
    file: 'agent/step-link.js',
    guard: 'withRing(state, progressed(ring, input.atMs))',
    instead: 'state',
  },
  {
    name: 'a neighbour that loads is told on (R1)',
    file: 'agent/step-link.js',
    guard: 'records: [], effects: [tell] };',
    instead: 'records: [], effects: [] };',
  },
  {
    name: 'a refusal of one that loads is a sign (R1)',
    file: 'agent/step-link.js',
    guard: "error.code !== 'RING_NOT_READY' || error.facts['phase'] !== 'loading'",
    instead: 'true',
  },
  {
    name: 'stages that are only emptied do not load (R4)',
    file: 'agent/step-link.js',
    guard: "kind === 'loading' && !loadsStages(ring)",
    instead: 'false',
  },
  {
    name: 'losses of an outage are counted (R4)',
    file: 'agent/step-suspension.js',
    guard: 'stagesLost: ring.suspension.stagesLost + 1',
    instead: 'stagesLost: 0',
  },
  {
    name: 'a host that gives up loads in vain (R4)',
    file: 'agent/step-suspension.js',
    guard: '(suspension === null || !givesUp(suspension)) &&',
    instead: '',
  },
  {
    name: 'a host that gives up has no sign (R4)',
    file: 'agent/step-suspension.js',
    guard: 'ring.suspension === null || givesUp(ring.suspension)',
    instead: 'ring.suspension === null',
  },
  {
    name: 'a reload has a limit (R4)',
    file: 'agent/step-timers.js',
    guard: ' && input.atMs - suspension.sinceMs < deadlineMs + limits.reloadMs',
    instead: '',
  },
];
