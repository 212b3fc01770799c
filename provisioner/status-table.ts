/** What agents say of themselves, as text for people. Values in, lines out. */
import type { RingName } from '../protocol/ids.ts';
import type { JournalStatus, NodeStatus, StatusReply } from '../protocol/messages.ts';
import type { P4Error } from '../protocol/errors.ts';
import { healthText, ringHealth, type RingHealth, type RingPart } from './ring-health.ts';
import type { Replay } from './ring-replay.ts';
import { bytesText, tableLines, type Column } from './text-table.ts';

/** What asking one host's agent gave. */
export interface HostAnswer {
  readonly host: string;
  readonly address: string;
  readonly answer:
    { readonly kind: 'status'; readonly status: StatusReply } | { readonly kind: 'error'; readonly error: P4Error };
}

const left = (title: string): Column => ({ title, align: 'left' });
const right = (title: string): Column => ({ title, align: 'right' });

const hostColumns = [
  ...[left('HOST'), left('ADDRESS'), left('STATE'), right('PID'), right('MEMORY')],
  ...[left('METRICS'), left('JOURNAL')],
];
const nodeColumns = [
  ...[right('NODE'), left('HOST'), left('LAYERS'), left('STATE'), right('PID'), right('THREADS'), left('CPUS')],
  ...[right('MEMORY'), right('PREFILLED'), right('DECODED'), right('ms/row'), right('KV CELLS'), right('KEPT')],
];
const linkColumns = [
  ...[left('LINK'), left('PEER'), right('FRAMES'), right('SENT')],
  ...[right('ack p50'), right('ack p99'), right('ON THE WAY')],
];

/** What this operator knows of rings besides what agents say. */
export interface KnownRings {
  /** What can be loaded again, by ring. */
  readonly replays: ReadonlyMap<string, Replay>;
  /** The hosts that each ring was loaded on from here. */
  readonly hosts: ReadonlyMap<string, readonly string[]>;
}

export const nothingKnown: KnownRings = { replays: new Map(), hosts: new Map() };

/**
 * The whole page: the hosts, then each ring with its nodes and links.
 * @param asked the one ring that was asked about, `null` for all
 */
export function statusLines(
  answers: readonly HostAnswer[],
  asked: RingName | null,
  known: KnownRings = nothingKnown,
): readonly string[] {
  const rings = mergedRings(answers, known);
  const problems = answers.flatMap(({ host, answer }) =>
    answer.kind === 'error'
      ? ['', `${host}: ${answer.error.message}`]
      : [
          ...missingLines(host, answer.status),
          ...metricsLines(host, answer.status),
          ...journalLines(host, answer.status),
        ],
  );
  return [
    ...tableLines(hostColumns, answers.map(hostRow)),
    ...(rings.length === 0
      ? ['', noRingLine(answers, asked)]
      : rings.flatMap((ring) => ['', ...ringLines(ring, known.replays.get(ring.ring) ?? null)])),
    ...problems,
  ];
}

/** What does not answer may well hold a ring. */
function noRingLine(answers: readonly HostAnswer[], asked: RingName | null): string {
  if (answers.length === 0) return 'The fleet has no hosts.';
  const isSure = answers.every(({ answer }) => answer.kind === 'status');
  const what = asked === null ? 'No ring is loaded' : `Ring ${asked} is not loaded`;
  return isSure ? `${what}.` : `${what} on the hosts that answer.`;
}

/** A3. */
function missingLines(host: string, { agent }: StatusReply): readonly string[] {
  const missing = agent?.addressMissing ?? '';
  if (missing === '') return [];
  return ['', `${host}: its advertised address ${missing} is not its own any more: give it back, or deploy again`];
}

/** The ring does not suffer from it. */
function metricsLines(host: string, { agent }: StatusReply): readonly string[] {
  const fault = agent?.metricsFault ?? '';
  return fault === '' ? [] : ['', `${host}: its metrics cannot be shown: ${fault}`];
}

/** J8: what is admitted already goes on; nothing new is. */
function journalLines(host: string, { journal }: StatusReply): readonly string[] {
  if (journal === null || isWritten(journal)) return [];
  const why = journal.reason === '' ? '' : `: ${journal.reason}`;
  return ['', `${host}: its journal is ${journal.state}${why}; nothing new is admitted until it can be written again`];
}

const isWritten = (journal: JournalStatus | null): boolean => journal === null || journal.state === 'open';

/** Whether every agent answers and admits, and a token can go round every ring. */
export const isAllReady = (answers: readonly HostAnswer[], known: KnownRings = nothingKnown): boolean =>
  answers.every(
    ({ answer }) =>
      answer.kind === 'status' &&
      (answer.status.agent?.addressMissing ?? '') === '' &&
      isWritten(answer.status.journal),
  ) && mergedRings(answers, known).every(({ health }) => health.word === 'ready');

function hostRow({ host, address, answer }: HostAnswer): readonly string[] {
  if (answer.kind === 'error') return [host, address, answer.error.code, '', '', '', ''];
  const { agent, journal, residentBytes } = answer.status;
  const journalText =
    journal === null ? '' : `${journal.state}, ${journal.records} records, ${bytesText(Number(journal.bytes))}`;
  const state = (agent?.addressMissing ?? '') === '' ? 'up' : 'address missing';
  const pid = String(agent?.pid ?? '');
  return [
    host,
    address,
    state,
    pid,
    bytesText(Number(residentBytes)),
    metricsText(agent?.metricsUrls ?? []),
    journalText,
  ];
}

/** The port, and how: on loopback alone, or for the fleet as well. */
function metricsText(urls: readonly string[]): string {
  const [url] = urls;
  if (url === undefined) return 'none';
  return `:${new URL(url).port} ${urls.some((each) => each.startsWith('https:')) ? 'tls' : 'local'}`;
}

/** One ring as its agents see it, each its own part. */
export interface MergedRing {
  readonly ring: string;
  readonly parts: readonly RingPart[];
  readonly health: RingHealth;
}

export function mergedRings(answers: readonly HostAnswer[], known: KnownRings): readonly MergedRing[] {
  const silent = answers.filter(({ answer }) => answer.kind === 'error').map(({ host }) => host);
  const parts = answers.flatMap(({ host, answer }) =>
    answer.kind === 'status' ? answer.status.rings.map((ring) => ({ ...ring, host })) : [],
  );
  const names = [...new Set(parts.map(({ ring }) => ring))].sort();
  return names.map((ring) => {
    const own = parts.filter((part) => part.ring === ring);
    return { ring, parts: own, health: ringHealth(own, { loadedOn: known.hosts.get(ring) ?? [], silent }) };
  });
}

function ringLines({ ring, parts, health }: MergedRing, replay: Replay | null): readonly string[] {
  const nodes = [...parts.flatMap((part) => part.nodes), ...(replay?.empty ?? [])].sort(
    (one, other) => one.node - other.node,
  );
  const links = parts.flatMap((part) => part.links).sort((one, other) => one.source - other.source);
  const heads = parts.flatMap(({ head }) => (head === null ? [] : [head]));
  return [
    `Ring ${ring}: ${healthText(parts, health)}`,
    ...heads.map(
      (head) =>
        `  ${head.sessionsOpen} of ${head.sessionsLimit} sessions open, ${head.prefixesKept} of ${head.prefixesLimit} kept, ` +
        `${head.requestsRunning} requests running, ` +
        `${head.requestsFinished} finished, ${head.tokensEmitted} tokens emitted`,
    ),
    ...indented(tableLines(nodeColumns, nodes.map(nodeRow))),
    ...reasonLines(parts, nodes),
    ...(replay === null ? [] : [`  to have it ${replay.aim === 'ready' ? 'ready again' : 'gone'}: ${replay.command}`]),
    ...(links.length === 0
      ? []
      : indented(
          tableLines(
            linkColumns,
            links.map((link) => [
              ...[`${link.source} > ${link.destination}`, link.peer, link.frames, bytesText(Number(link.bytes))],
              ...[`${link.ackP50Ms.toFixed(2)} ms`, `${link.ackP99Ms.toFixed(2)} ms`, String(link.unacknowledged)],
            ]),
          ),
        )),
  ];
}

/** Why a part of the ring is as it is, each reason once: too long for a table. */
function reasonLines(parts: MergedRing['parts'], nodes: readonly NodeStatus[]): readonly string[] {
  const reasons = [
    ...parts.map(({ host, phase, reason }) => ({ what: `${phase} on ${host}`, reason })),
    ...nodes.map(({ node, state, reason }) => ({ what: `node ${node} ${state}`, reason })),
  ];
  return reasons.filter(({ reason }) => reason !== '').map(({ what, reason }) => `  ${what}: ${reason}`);
}

/** A stage that does not run has no process. */
const pidText = (pid: number): string => (pid === 0 ? '' : String(pid));

function nodeRow(node: NodeStatus): readonly string[] {
  const rows = Number(node.prefilledRows) + Number(node.decodedRows);
  return [
    ...[String(node.node), node.host, `${node.firstLayer}-${node.lastLayer}`, node.state, pidText(node.pid)],
    ...[node.threads === 0 ? '' : String(node.threads), node.cpus === '' && node.threads > 0 ? 'any' : node.cpus],
    ...[bytesText(Number(node.residentBytes)), node.prefilledRows, node.decodedRows],
    ...[rows === 0 ? '' : ((node.computeSeconds * 1000) / rows).toFixed(2), String(node.kvCellsUsed)],
    String(node.kvCellsKept),
  ];
}

const indented = (lines: readonly string[]): readonly string[] => lines.map((line) => `  ${line}`);
