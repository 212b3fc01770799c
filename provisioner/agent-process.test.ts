import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hostName } from '../protocol/ids.ts';
import { agentLost, lastLines } from './agent-process.ts';

test('what an agent said last is whole lines beside its log', () => {
  assert.deepEqual(lastLines('first\n{"event":"ready"}\nSegmentation fault\n', false), ['first', 'Segmentation fault']);
  assert.deepEqual(lastLines('ready","host":"ant"}\n{"event":"stage"}\nout of memory\n', true), ['out of memory']);
  assert.deepEqual(lastLines('ready","host":"ant"}\n', true), [], 'the rest of a line is none');
});

test('an agent that said nothing but its log is lost without a word, and its log is named', () => {
  const end = { host: hostName('ant'), status: null, signal: 'SIGKILL', said: [], log: '/srv/agent.log' } as const;
  assert.deepEqual(agentLost(end).facts, { host: 'ant', exit: 'SIGKILL', log: '/srv/agent.log' });
  assert.match(agentLost(end).message, /end this command \(Ctrl-C\)[^]*start it again/);
  assert.deepEqual(agentLost({ ...end, said: ['out of memory'] }).facts['said'], ['out of memory']);
});
