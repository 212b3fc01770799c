import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { eventually } from '../../test/fixture/eventually.ts';
import { awaitInFolder } from './folder-watch.ts';
import { stageOrders } from './stage-orders.ts';

const instance = '0123abcd.0.7';

suite('orders through a folder', () => {
  let folder = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'p4-requests-'));
  });
  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const orders = (): ReturnType<typeof stageOrders> =>
    stageOrders({ template: 'p4-stage', privileges: { kind: 'request-folder', folder } });

  test('an order is an empty file whose name is all of it, and is given when that is taken', async () => {
    let isGiven = false;
    const given = orders()
      .start(instance)
      .then(() => (isGiven = true));
    await eventually(() => readdirSync(folder).includes(`start.${instance}`), { what: 'the request is there' });
    assert.equal(isGiven, false);
    rmSync(join(folder, `start.${instance}`));
    await given;
  });

  test('a folder that is not there refuses the order', async () => {
    const privileges = { kind: 'request-folder', folder: join(folder, 'absent') } as const;
    await assert.rejects(
      stageOrders({ template: 'p4-stage', privileges }).stop(instance),
      (error) => error instanceof P4Error && error.code === 'STAGE_UNIT_REFUSED',
    );
  });

  test('what a former agent left in the folder goes', () => {
    writeFileSync(join(folder, `stop.${instance}`), '');
    mkdirSync(join(folder, 'odd'));
    orders().clear();
    assert.deepEqual(readdirSync(folder), []);
  });

  test('waiting in a folder ends with the time', async () => {
    const look = (): true | null => (existsSync(join(folder, 'never')) ? true : null);
    assert.equal(await awaitInFolder(folder, look, 50), null);
  });
});

test('orders name only units of stages', () => {
  const orders = stageOrders({ template: 'p4-stage', privileges: { kind: 'polkit' } });
  assert.equal(orders.unit(instance), 'p4-stage@0123abcd.0.7.service');
  assert.throws(() => orders.unit('dbus'));
});
