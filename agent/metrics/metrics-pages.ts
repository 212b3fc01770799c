/** What is answered to whoever asks: /metrics, /healthz and /readyz, and nothing else. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

import { limits } from '../../protocol/limits.ts';
import type { Log } from '../log.ts';
import type { Readiness } from '../readiness.ts';
import { contentTypes, type ExpositionFormat } from './exposition.ts';
import { Pace } from './pace.ts';

export interface PageSources {
  readonly text: (format: ExpositionFormat) => Promise<string>;
  readonly readiness: () => Readiness;
  readonly log: Log;
}

interface Page {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

const plain = (status: number, text: string): Page => ({
  status,
  type: 'text/plain; charset=utf-8',
  text: `${text}\n`,
});

export function metricsPages(sources: PageSources): RequestListener {
  const pace = new Pace(limits.metricRequestsPerSecond);
  return (request, response) => {
    const waitMs = pace.takeMs(performance.now(), limits.metricWaitMs);
    if (waitMs === null) {
      send(request, response, plain(503, 'too many requests'));
      return;
    }
    const answer = (): void => {
      void pageOrBug(request, sources).then((page) => {
        send(request, response, page);
      });
    };
    if (waitMs === 0) answer();
    else setTimeout(answer, waitMs).unref();
  };
}

/** Nothing is changed by who looks, so a bug in it is told and costs this answer alone. */
async function pageOrBug(request: IncomingMessage, sources: PageSources): Promise<Page> {
  try {
    return await pageOf(request, sources);
  } catch (error) {
    sources.log({
      event: 'metrics-bug',
      stack: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    return plain(500, 'a bug: the agent’s log says more');
  }
}

async function pageOf({ method, url = '', headers }: IncomingMessage, sources: PageSources): Promise<Page> {
  if (method !== 'GET' && method !== 'HEAD') return plain(405, 'only GET and HEAD are answered');
  switch (url.replace(/\?.*/, '')) {
    case '/metrics': {
      const format = formatFor(headers.accept ?? '');
      return { status: 200, type: contentTypes[format], text: await sources.text(format) };
    }
    case '/healthz':
      return plain(200, 'ok');
    case '/readyz':
      return readyPage(sources.readiness());
    default:
      return plain(404, 'there are /metrics, /healthz and /readyz');
  }
}

/** OpenMetrics only for those who ask for it by name and do not like it less than text. */
export function formatFor(accept: string): ExpositionFormat {
  const qualityOf = (type: string): number => {
    for (const part of accept.toLowerCase().split(',')) {
      const [name, ...parameters] = part.split(';').map((each) => each.trim());
      if (name !== type) continue;
      const quality = parameters.find((each) => each.startsWith('q='))?.slice(2);
      return quality === undefined ? 1 : Number(quality) || 0;
    }
    return 0;
  };
  const open = qualityOf('application/openmetrics-text');
  return open > 0 && open >= qualityOf('text/plain') ? 'openmetrics' : 'text';
}

function readyPage({ isReady, rings, journal }: Readiness): Page {
  const lines = [
    isReady ? 'ready' : 'not ready',
    ...(journal === null ? [] : [`journal: ${journal}`]),
    ...rings.map(({ ring, state, code }) => `${ring}: ${state}${code === '' ? '' : ` (${code})`}`),
  ];
  return plain(isReady ? 200 : 503, lines.join('\n'));
}

function send(
  { method, httpVersionMajor }: IncomingMessage,
  response: ServerResponse,
  { status, type, text }: Page,
): void {
  if (response.destroyed || httpVersionMajor !== 1) return;
  const bytes = Buffer.from(text);
  // Who was sent away is to come back on a connection of its own.
  if (status !== 200) response.setHeader('Connection', 'close');
  response.writeHead(status, {
    ...{ 'Content-Type': type, 'Content-Length': bytes.length },
    ...{ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' },
  });
  response.end(method === 'HEAD' ? undefined : bytes);
}
