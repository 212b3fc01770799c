import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { RingStatus, StatusReply } from '../protocol/messages.ts';
import { parsePlan } from '../protocol/plan-document.ts';
import { replaysOf, type HostStatus, type KnownLoad } from './ring-replay.ts';

const text =
  'ring: tale\nmodel: m.gguf\ncontext: 512\nsessions: 2\nstages: [{ host: ant, layers: 0-1 }, { host: bee, layers: 2-4 }]\n';

function known(loadId: string, phase: KnownLoad['phase'] = 'ready'): KnownLoad {
  const reading = parsePlan(text, 'plan.yaml');
  assert.ok(reading.kind !== 'faults', JSON.stringify(reading));
  return { plan: reading.plan, planFile: "/home/ada/the plan's.yaml", loadId, phase };
}

const part = (phase: string): RingStatus => ({
  ...{ ring: 'tale', phase, reason: '', suspendedMs: '0', loadId: 'a', planDigest: '' },
  ...{ nodes: [], links: [], head: null },
});

const says = (host: string, ...rings: readonly RingStatus[]): HostStatus => {
  const status: StatusReply = { agent: null, rings, journal: null, cpuSeconds: 0, residentBytes: '0', samples: null };
  return { host, status };
};

test('a host that was rebooted has empty nodes, and the command replays the load', () => {
  const [replay, ...others] = replaysOf(
    [known('a')],
    [says('ant', part('suspended')), says('bee', part('claimed'))],
    null,
  );
  assert.deepEqual(others, []);
  assert.equal(replay?.command, `npm run load -- '/home/ada/the plan'\\''s.yaml'`);
  assert.deepEqual(
    replay.empty.map(({ node, host, firstLayer, lastLayer, state }) => ({ node, host, firstLayer, lastLayer, state })),
    [{ node: 1, host: 'bee', firstLayer: 2, lastLayer: 4, state: 'empty' }],
  );
});

test('what a host cannot read is given up, not told again', () => {
  const [replay] = replaysOf([known('a')], [says('ant', part('suspended')), says('bee', part('unreadable'))], null);
  assert.equal(replay?.aim, 'gone');
  assert.match(replay.command, /^npm run unload -- /);
});

test('a state folder that commands do not find by themselves is named', () => {
  const [replay] = replaysOf([known('a')], [says('ant', part('claimed'))], '/srv/p4');
  assert.match(replay?.command ?? '', / --state \/srv\/p4$/);
});

test('a host that was installed anew does not even hold the name of the ring', () => {
  const [replay] = replaysOf([known('a')], [says('ant', part('suspended')), says('bee')], null);
  assert.deepEqual(
    replay?.empty.map(({ node }) => node),
    [1],
  );
});

test('nothing is to be replayed where all is well, another load has the name, or nobody says anything', () => {
  assert.deepEqual(replaysOf([known('a')], [says('ant', part('ready')), says('bee', part('linked'))], null), []);
  assert.deepEqual(replaysOf([known('b')], [says('ant', part('claimed')), says('bee', part('claimed'))], null), []);
  assert.deepEqual(
    replaysOf([known('a')], [says('ant', part('loading')), says('bee')], null),
    [],
    'it is being loaded',
  );
  assert.deepEqual(
    replaysOf([known('a')], [says('ant', part('suspended')), says('bee', part('suspended'))], null),
    [],
    'agents that know its generation load it again by themselves',
  );
  assert.deepEqual(replaysOf([known('a')], [], null), []);
  assert.deepEqual(replaysOf([known('a')], [says('ant', part('ready'))], null), [], 'bee does not answer');
});

test('what an unload that was cut short has left is taken down by an unload, never loaded again', () => {
  const [left] = replaysOf([known('a', 'unloading')], [says('ant', part('ready')), says('bee')], null);
  assert.deepEqual([left?.aim, left?.command], ['gone', `npm run unload -- '/home/ada/the plan'\\''s.yaml'`]);
  assert.deepEqual(replaysOf([known('a', 'unloading')], [says('ant'), says('bee')], null), [], 'nothing is left');
});

test('a load whose loader ended before a token had gone round is to be finished', () => {
  const half = [says('ant', part('linked')), says('bee', part('linked'))];
  assert.match(replaysOf([known('a', 'loading')], half, null)[0]?.command ?? '', /^npm run load -- /);
  const whole = [says('ant', part('ready')), says('bee', part('linked'))];
  assert.deepEqual(replaysOf([known('a', 'loading')], whole, null), []);
  const atWork = [says('ant', part('loaded')), says('bee', part('loading'))];
  assert.deepEqual(replaysOf([known('a', 'loading')], atWork, null), []);
});
