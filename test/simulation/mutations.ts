/** The guards that recovery rests on, by name, and how each is taken away in the built files. */
import { deadlineMutations } from './deadline-mutations.ts';
import { keptMutations } from './kept-mutations.ts';
import type { Mutation } from './mutation.ts';

const stepLink = 'agent/step-link.js';
const stepRing = 'agent/step-ring.js';
const stepStage = 'agent/step-stage.js';
const suspension = 'agent/step-suspension.js';
const timers = 'agent/step-timers.js';
const recovery = 'agent/head/recovery.js';
const requests = 'agent/head/requests.js';
const memory = 'agent/head/memory.js';
const schedule = 'agent/head/schedule.js';

export const mutations: readonly Mutation[] = [
  // Generation
  {
    name: 'calls: generation compare (G3)',
    file: 'agent/outcome.js',
    guard: 'if (ring.generation !== at.generation)',
    instead: 'if (false)',
  },
  {
    name: 'load: generation compare (G6)',
    file: 'agent/step-load.js',
    guard: "standing.kind === 'live' ? standing.generation === input.generation : input.digestMatches",
    instead: 'true',
  },
  {
    name: 'receipts: generation compare (G5)',
    file: stepRing,
    guard: 'sourceGeneration !== ring.generation',
    instead: 'false',
  },
  {
    name: 'receipts: stranger is stopped (G5)',
    file: suspension,
    guard: 'else if (node === stranger)',
    instead: 'else if (false)',
  },
  // Journal
  ...(['publish-token', 'publish-end'] as const).map((kind): Mutation => ({
    name: `commit before ${kind} (J8)`,
    file: 'agent/effects.js',
    guard: `'${kind}': 'committed'`,
    instead: `'${kind}': 'immediate'`,
  })),
  {
    name: 'commit before start-stage (J2)',
    file: 'agent/effects.js',
    guard: "'start-stage': 'committed'",
    instead: "'start-stage': 'immediate'",
  },
  {
    name: 'commit before reply (J2)',
    file: 'agent/effects.js',
    guard: "reply: 'committed'",
    instead: "reply: 'immediate'",
  },
  {
    name: 'submit grows lists of its own (J1)',
    file: requests,
    guard: 'historyOf([...session.history.tokens.slice(0, session.history.length), ...order.prompt])',
    instead: 'appendTokens(session.history, order.prompt)',
  },
  // News of what is no more
  {
    name: 'stale start of a stage: loaded (R2)',
    file: stepStage,
    guard: "ring?.phase.kind !== 'loading' || node?.incarnation !== input.incarnation",
    instead: "ring?.phase.kind !== 'loading' || node === undefined",
  },
  {
    name: 'stale start of a stage: lost (R2)',
    file: stepStage,
    guard: 'if (ring === null || node?.incarnation !== input.incarnation)',
    instead: 'if (ring === null || node === undefined)',
  },
  {
    name: 'stale start of a stage: stopped (R2)',
    file: stepStage,
    guard: "node?.kind !== 'stopping' || node.incarnation !== input.incarnation",
    instead: "node?.kind !== 'stopping'",
  },
  {
    name: 'stale suspension of a deadline (R4)',
    file: timers,
    guard: 'ring?.suspension?.number !== input.suspension || ring.suspension.isOverdue',
    instead: 'ring === null || ring.suspension === null || ring.suspension.isOverdue',
  },
  {
    name: 'retry of a ring that ends',
    file: timers,
    guard: "taken down stays so.\n    if (ring.phase.kind === 'ending')",
    instead: 'taken down stays so.\n    if (false)',
  },
  {
    name: 'deadline of a ring that ends (S3)',
    file: timers,
    guard: "has ended with it.\n    if (ring.phase.kind === 'ending')",
    instead: 'has ended with it.\n    if (false)',
  },
  {
    name: 'nothing goes round before the ring is whole',
    file: stepRing,
    guard: "if (ring.phase.kind !== 'ready')\n        return { state: withHead(state, ring, head), records, effects };",
    instead: '',
  },
  // Draws and rows
  {
    name: 'doubled or unawaited draw (E1)',
    file: requests,
    guard: 'request.sampledBy === null ||\n        item.step !== request.emitted',
    instead: 'false',
  },
  {
    name: 'awaits its token',
    file: schedule,
    guard: 'if (isOnItsWay)',
    instead: 'if (false)',
  },
  {
    name: 'a lost token is not awaited',
    file: recovery,
    guard: '{ ...request, sampledBy: null } : request',
    instead: 'request : request',
  },
  {
    name: 'rows are cut back to those that came home',
    file: recovery,
    guard: 'shortenedMarks(session.rows, ranRows(session, request))',
    instead: 'session.rows',
  },
  {
    name: 'lost rows run again',
    file: recovery,
    guard: 'rows, sentRows: 0, ending: null }',
    instead: 'rows, sentRows: rows.length, ending: null }',
  },
  {
    name: 'frames in flight are forgotten',
    file: recovery,
    guard: 'outbox: [], framesInFlight: 0 };',
    instead: 'outbox: [] };',
  },
  {
    name: 'what waited is not sent twice',
    file: recovery,
    guard: 'return { ...head, outbox };',
    instead: 'return { ...head, outbox: [...head.outbox, ...outbox] };',
  },
  {
    name: 'sessions are opened again',
    file: recovery,
    guard: "outbox.push({ kind: 'open', session: session.id, slot: session.slot });",
    instead: '',
  },
  {
    name: 'begin again: rows that ran (S2)',
    file: recovery,
    guard: '{ prefilled: promptTokens - began.rows, decoded: emitted - 1 }',
    instead: '{ prefilled: 0, decoded: 0 }',
  },
  {
    name: 'begin again: tokens that were drawn (X3)',
    file: recovery,
    guard: 'drawn: history.tokens.slice(promptTokens, promptTokens + emitted)',
    instead: 'drawn: []',
  },
  {
    name: 'begin again: tokens before (X3)',
    file: recovery,
    guard: 'slice(0, hasDrawn ? promptTokens : began.rows)',
    instead: 'slice(0, promptTokens)',
  },
  {
    name: 'ends are sent again (S3)',
    file: recovery,
    guard: "outbox.push({ kind: 'end', session, request: id, receipts: [], ran });",
    instead: '',
  },
  {
    name: 'ends say what ran (S2)',
    file: recovery,
    guard: 'receipts: [], ran });',
    instead: 'receipts: [], ran: null });',
  },
  {
    name: 'rows that ran alone run alone (R3)',
    file: schedule,
    guard: 'rows.alone[sentRows] === true;',
    instead: 'false;',
  },
  {
    name: 'rows in company stop at one that was alone (R3)',
    file: schedule,
    guard: ' && rows.alone[end] !== true',
    instead: '',
  },
  {
    name: 'a stage leaves an item alone (R3)',
    file: 'stage/row-batch.js',
    guard: 'last === undefined || alone || last.groups[0]?.item.alone === true',
    instead: 'last === undefined',
  },
  {
    name: 'a stage pads rows that had company (R3)',
    file: 'stage/row-batch.js',
    guard: 'first?.item.alone === false',
    instead: 'false',
  },
  {
    name: 'a lost row is not alone beside others that are (R3)',
    file: schedule,
    guard: 'alone: alone && !again',
    instead: 'alone',
  },
  // Settlements
  {
    name: 'settled once (S3)',
    file: requests,
    guard: "if (request?.kind !== 'ending')",
    instead: "if (request === undefined || request.kind === 'running')",
  },
  {
    name: 'a failure ends a request once',
    file: requests,
    guard: "if (request?.kind !== 'running')\n        return unchangedHead(head);\n    const reason = failedReasons",
    instead: 'const reason = failedReasons',
  },
  {
    name: 'requests of a ring that goes are settled (S3)',
    file: stepStage,
    guard: 'abandonedRequests(ring.memory, ring.load, lossText(error))',
    instead: '[]',
  },
  {
    name: 'a lost stage has an end without begin (S2)',
    file: 'stage/receipt-book.js',
    guard: '...ran, ...nothingYet }',
    instead: '...ran, prefilled: 0, ...nothingYet }',
  },
  {
    name: 'receipts go on from what ran (S2)',
    file: 'stage/receipt-book.js',
    guard: 'session, ...ran, reused: reusedRows',
    instead: 'session, prefilled: 0, decoded: 0, reused: reusedRows',
  },
  // Losses
  {
    name: 'stages are emptied on a loss',
    file: suspension,
    guard:
      "nodes.set(node, { kind: 'attaching', incarnation: nodeState.incarnation });\n            effects.push({ kind: 'attach-stage', ...of });",
    instead: 'nodes.set(node, nodeState);',
  },
  { name: 'a new connection empties a stage', file: 'stage/stage-core.js', guard: 'engine.clear();', instead: '' },
  {
    name: 'a new connection drops frames',
    file: 'stage/stage-core.js',
    guard: 'while (this.#queue.length > 0)',
    instead: 'while (false)',
  },
  {
    name: 'the ring is cut on a loss',
    file: suspension,
    guard: "{ kind: 'cut-ring', ...at, error: loss.error },",
    instead: '',
  },
  {
    name: 'lost links are dialled again',
    file: stepLink,
    guard: 'ring.suspension !== null && ring.head !== null',
    instead: 'false',
  },
  {
    name: 'edges: not while stages load',
    file: stepLink,
    guard:
      "ring.phase.kind === 'loading' || ring.phase.kind === 'ending') {\n        return new P4Error('RING_NOT_READY'",
    instead: "false) {\n        return new P4Error('RING_NOT_READY'",
  },
  {
    name: 'edges: generation compare (G3)',
    file: stepLink,
    guard: 'if (ring.generation !== edge.generation)',
    instead: 'if (false)',
  },
  {
    name: 'retries go on',
    file: timers,
    guard: "ring.phase.kind === 'unlinked' ? dialled(state, ring, { calls: [], atMs: input.atMs })",
    instead: 'false ? null',
  },
  {
    name: 'a lost stage is started again',
    file: timers,
    guard: "filter(([, { kind }]) => kind === 'lost')",
    instead: 'filter(() => false)',
  },
  {
    name: 'a loss fails no request (R1)',
    file: suspension,
    guard: 'head: ring.head === null ? null : suspendedHead(ring.head)',
    instead: 'head: null',
  },
  {
    name: 'the deadline comes (R4)',
    file: suspension,
    guard: "{ kind: 'await-deadline', ring, load, suspension: number, ms },\n        {",
    instead: '{',
  },
  ...deadlineMutations,
  // Terms
  {
    name: 'links use the terms told last (G6)',
    file: 'agent/step-load.js',
    guard: '{ ...standing, ...underTerms(standing, termsOf(input)) }',
    instead: 'standing',
  },
  {
    name: 'terms told last are durable (G6)',
    file: 'agent/step-load.js',
    guard: 'sameTerms(former, terms)',
    instead: 'true',
  },
  ...keptMutations,
  // Leases
  {
    name: 'leases of a restart run out',
    file: recovery,
    guard: '[...step.effects, ...orphans]',
    instead: 'step.effects',
  },
  {
    name: 'leases begin with the session',
    file: 'agent/head/sessions.js',
    guard: "{ kind: 'await-lease', of: { ...at, session } },",
    instead: '',
  },
  // Restart
  {
    name: 'ids go on after a restart (E1)',
    file: memory,
    guard: 'this.#nextSession = Math.max(this.#nextSession, id + 1);',
    instead: '',
  },
  {
    name: 'request ids go on after a restart (E1)',
    file: memory,
    guard: 'this.#nextRequest = Math.max(this.#nextRequest, request + 1);',
    instead: '',
  },
  {
    name: 'shapes are remembered (R3)',
    file: memory,
    guard: 'appendMarks(before, 1, alone)',
    instead: 'appendMarks(before, 1, false)',
  },
  {
    name: 'texts are there again after a restart (J8)',
    file: recovery,
    guard: "effects.push({ kind: 'publish-token', of, index, token, text: added.released });",
    instead: '',
  },
  {
    name: 'starts have numbers above those that live (R2)',
    file: 'agent/step-claim.js',
    guard: 'Math.max(state.nextIncarnation, highestStart + 1)',
    instead: 'state.nextIncarnation',
  },
];
