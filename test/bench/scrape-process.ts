/**
 * A process that asks an agent for its metrics as Prometheus does, over one connection, and throws away what it reads. One of
 * its own: whoever measures the time from token to token is not held up by it. It ends when whoever started it is gone.
 */
import { Agent, get } from 'node:http';

import { assert, unreachable } from '../../protocol/assert.ts';
import type { NetAddress } from '../../protocol/net-address.ts';
import type { ScrapeAnswer, ScrapeOrder } from './scrape-messages.ts';

const connection = new Agent({ keepAlive: true, maxSockets: 1 });
let timer: NodeJS.Timeout | undefined;
let [scrapes, failures] = [0, 0];

function say(answer: ScrapeAnswer): void {
  assert(process.send !== undefined, 'the benchmark has forked this process');
  process.send(answer);
}

function scrape({ address, port }: NetAddress): void {
  const request = get({ host: address, port, path: '/metrics', agent: connection }, (response) => {
    response.resume();
    response.once('end', () => {
      if (response.complete && response.statusCode === 200) scrapes += 1;
      else failures += 1;
    });
  });
  request.once('error', () => {
    failures += 1;
  });
}

process.on('message', (order: ScrapeOrder) => {
  switch (order.kind) {
    case 'scrape':
      [scrapes, failures] = [0, 0];
      timer = setInterval(() => {
        scrape(order.target);
      }, order.everyMs);
      say({ kind: 'scraping' });
      return;
    case 'stop':
      clearInterval(timer);
      say({ kind: 'stopped', scrapes, failures });
      return;
    default:
      unreachable(order);
  }
});
process.on('disconnect', () => {
  process.exit(0);
});
