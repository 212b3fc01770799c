/** What a reader is told of losses while it waits: lines for people, events for programs. */
import { unreachable } from '../protocol/assert.ts';
import type { GatheredPause } from '../protocol/messages.ts';
import { printable } from '../protocol/rpc-error.ts';
import type { ReadingNews } from './request-reading.ts';

export type LossNews = Exclude<ReadingNews, { kind: 'token' }>;

/** @param wallClockMs Unix time of a time of the news */
export function lossLine(news: LossNews, wallClockMs: (atMs: number) => number): string {
  const until = (atMs: number): string => clockText(new Date(wallClockMs(atMs)));
  switch (news.kind) {
    case 'paused':
      return `${lostPart(news.pause)} is lost (${reasonText(news.pause)}): waiting until ${until(news.untilMs)}`;
    case 'disconnected': {
      const { code, facts } = news.error;
      const host = typeof facts['host'] === 'string' ? ` on host ${facts['host']}` : '';
      const why = typeof facts['why'] === 'string' ? `, ${facts['why']}` : '';
      const what = code === 'STAGE_LOST' ? "the ring's head" : "the connection to the head's agent";
      return `${what}${host} is lost (${code}${why}): trying again until ${until(news.untilMs)}`;
    }
    case 'resumed':
    case 'reconnected':
      return 'going on';
    default:
      return unreachable(news);
  }
}

export function lossEvent(news: LossNews, wallClockMs: (atMs: number) => number): Readonly<Record<string, unknown>> {
  const until = (atMs: number): string => new Date(wallClockMs(atMs)).toISOString();
  switch (news.kind) {
    case 'paused': {
      const { code, text, host, node } = news.pause;
      return { event: 'paused', code, text, host, node: node === '' ? null : Number(node), until: until(news.untilMs) };
    }
    case 'disconnected':
      return { event: 'disconnected', code: news.error.code, facts: news.error.facts, until: until(news.untilMs) };
    case 'resumed':
    case 'reconnected':
      return { event: news.kind };
    default:
      return unreachable(news);
  }
}

function lostPart({ node, host }: GatheredPause): string {
  if (node !== '') return `stage ${printable(node)} on host ${printable(host)}`;
  return host === '' ? 'a part of the ring' : `the agent on host ${printable(host)}`;
}

/** The text may begin with its code. */
function reasonText({ code, text }: GatheredPause): string {
  const said = printable(text);
  if (said === '') return printable(code);
  return said.startsWith(code) ? said : `${printable(code)}: ${said}`;
}

const clockText = (time: Date): string =>
  [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
