import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { connect, createServer, type ConnectionOptions } from 'node:tls';
import { hostName } from '../protocol/ids.ts';
import { identityOf, identityOfPem } from '../protocol/peer-identity.ts';
import { systemCode, tlsOptions, type TlsIdentity } from '../protocol/tls-identity.ts';
import type { Holder } from './certificate.ts';
import { ensureAuthority, ensureCertificate, hasCertificate, revokeCertificate, standingCertificate } from './pki.ts';
import { stateFolder, type StateFolder } from './state-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'p4-pki-'));
after(() => {
  rmSync(scratch, { recursive: true });
});

let folders = 0;
function newFolder(): StateFolder {
  folders += 1;
  return stateFolder({ option: `s${folders}`, environment: {}, workingFolder: scratch });
}

const agent = (...addresses: string[]): Holder => ({ role: 'agent', host: hostName('ant'), addresses });
const now = new Date();
const daysLater = (days: number): Date => new Date(now.getTime() + days * 86_400_000);

async function identityIn(folder: StateFolder, holder: Holder): Promise<TlsIdentity> {
  return (await ensureCertificate(folder, holder, now)).identity;
}

test('an authority is made once; its key is for its owner only', async () => {
  const folder = newFolder();
  const pem = await ensureAuthority(folder, now);
  assert.equal(await ensureAuthority(folder, daysLater(1)), pem);
  assert.deepEqual(readdirSync(folder.pki).sort(), ['authority.crt', 'authority.key']);
  assert.equal(statSync(join(folder.pki, 'authority.key')).mode & 0o777, 0o600);
  assert.equal(statSync(folder.pki).mode & 0o777, 0o700);
  assert.equal(readFileSync(join(folder.pki, 'authority.crt'), 'utf8'), pem);
  assert(!pem.includes('PRIVATE'));
  const certificate = new X509Certificate(pem);
  assert(certificate.ca);
  assert.match(certificate.subject, /^CN=p4 fleet [0-9a-f]{8}$/);
  assert.notEqual(new X509Certificate(await ensureAuthority(newFolder(), now)).subject, certificate.subject);
});

test('commands that meet make one authority', async () => {
  const folder = newFolder();
  const made = await Promise.all(Array.from({ length: 4 }, () => ensureAuthority(folder, now)));
  assert.equal(new Set(made).size, 1);
});

test('a certificate has its holder’s role, name and addresses, and its time', async () => {
  const folder = newFolder();
  const { identity, paths, expires } = await ensureCertificate(
    folder,
    agent('192.0.2.1', '2001:DB8::1', 'ant.lan'),
    now,
  );
  assert.deepEqual(identityOfPem(identity.certificate), { role: 'agent', name: 'ant' });
  const certificate = new X509Certificate(identity.certificate);
  assert.equal(
    certificate.subjectAltName,
    'DNS:ant, DNS:ant.lan, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:1',
  );
  assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']);
  assert(!certificate.ca);
  assert(certificate.verify(new X509Certificate(identity.authority).publicKey));
  const startsBefore = now.getTime() - new Date(certificate.validFrom).getTime();
  assert(startsBefore >= 3_600_000 && startsBefore < 3_602_000, 'hosts’ clocks may differ by an hour');
  assert.equal(Math.round((expires.getTime() - now.getTime()) / 86_400_000), 825);
  assert.equal(statSync(paths.key).mode & 0o777, 0o600);
  assert.equal(readFileSync(paths.key, 'utf8'), identity.key);
  assert.equal(readFileSync(paths.certificate, 'utf8'), identity.certificate);
  assert.equal(readFileSync(paths.authority, 'utf8'), identity.authority);
});

test('commands have a certificate for each role, good for calling only', async () => {
  const folder = newFolder();
  const holders = [{ role: 'operator' }, { role: 'client' }, { role: 'monitor', host: hostName('ant') }] as const;
  for (const holder of holders) {
    const { certificate } = await identityIn(folder, holder);
    const name = holder.role === 'monitor' ? 'ant' : holder.role;
    assert.deepEqual(identityOfPem(certificate), { role: holder.role, name });
    assert.deepEqual(new X509Certificate(certificate).keyUsage, ['1.3.6.1.5.5.7.3.2']);
  }
});

test('serial numbers are random', async () => {
  const folder = newFolder();
  const serials = new Set<string>();
  for (const host of ['a', 'b', 'c', 'd']) {
    const { certificate } = await identityIn(folder, { role: 'agent', host: hostName(host), addresses: [] });
    serials.add(new X509Certificate(certificate).serialNumber);
  }
  assert.equal(serials.size, 4);
  for (const serial of serials) assert(serial.length >= 30, 'a serial number has about 128 random bits');
});

test('a certificate is used again until a month before its end, or until its names change', async () => {
  const folder = newFolder();
  const first = await ensureCertificate(folder, agent('127.0.0.1'), now);
  assert(first.isNew);
  const again = await ensureCertificate(folder, agent('127.0.0.1'), daysLater(790));
  assert(!again.isNew);
  assert.deepEqual(again.identity, first.identity);
  const renewed = await ensureCertificate(folder, agent('127.0.0.1'), daysLater(796));
  assert(renewed.isNew);
  assert.equal(renewed.identity.authority, first.identity.authority);
  assert.notEqual(renewed.identity.key, first.identity.key);
  const moved = await ensureCertificate(folder, agent('127.0.0.1', '::1'), daysLater(796));
  assert(moved.isNew);
});

test('a certificate never outlives its authority, and an authority past its end signs nothing', async () => {
  const folder = newFolder();
  const authority = new X509Certificate(await ensureAuthority(folder, now));
  const late = await ensureCertificate(folder, agent(), daysLater(3649));
  assert.equal(late.expires.getTime(), new Date(authority.validTo).getTime());
  assert(!(await ensureCertificate(folder, agent(), daysLater(3649))).isNew, 'renewing would gain nothing');
  await assert.rejects(ensureCertificate(folder, agent(), daysLater(3651)), { code: 'PKI_EXPIRED' });
});

test('a broken or foreign certificate is made anew', async () => {
  const folder = newFolder();
  const other = newFolder();
  const { paths } = await ensureCertificate(folder, agent(), now);
  const foreign = await identityIn(other, agent());
  const breaks: readonly (() => void)[] = [
    () => {
      unlinkSync(paths.key);
    },
    () => {
      unlinkSync(paths.certificate);
    },
    () => {
      writeFileSync(paths.key, foreign.key);
    },
    () => {
      writeFileSync(paths.key, foreign.key);
      writeFileSync(paths.certificate, foreign.certificate);
    },
    () => {
      writeFileSync(paths.certificate, 'x');
    },
  ];
  for (const damage of breaks) {
    damage();
    assert((await ensureCertificate(folder, agent(), now)).isNew);
    assert(!(await ensureCertificate(folder, agent(), now)).isNew);
  }
});

test('a damaged authority is refused and left as it is', async () => {
  const folder = newFolder();
  const foreign = newFolder();
  await ensureAuthority(folder, now);
  await ensureAuthority(foreign, now);
  const key = join(folder.pki, 'authority.key');
  const good = readFileSync(key, 'utf8');
  const certificateStart = good.indexOf('-----BEGIN CERTIFICATE-----');
  const foreignCertificate = readFileSync(join(foreign.pki, 'authority.crt'), 'utf8');
  const damages = [
    ['x', 'key or certificate is not PEM'],
    [good.slice(0, certificateStart), 'key or certificate is not PEM'],
    [good.slice(0, certificateStart) + foreignCertificate, 'the key is not that of the certificate'],
  ] as const;
  for (const [text, why] of damages) {
    writeFileSync(key, text);
    await assert.rejects(ensureCertificate(folder, agent(), now), {
      code: 'PKI_DAMAGED',
      facts: { certificate: join(folder.pki, 'authority.crt'), key, why },
    });
    assert.equal(readFileSync(key, 'utf8'), text);
  }
  unlinkSync(key);
  await assert.rejects(ensureAuthority(folder, now), /the key is missing/);
});

test('the copy of the authority’s certificate is put back where it is lost', async () => {
  const folder = newFolder();
  const pem = await ensureAuthority(folder, now);
  unlinkSync(join(folder.pki, 'authority.crt'));
  assert.equal(await ensureAuthority(folder, now), pem);
  assert.equal(readFileSync(join(folder.pki, 'authority.crt'), 'utf8'), pem);
});

/** What a server that wants a certificate of the fleet sees of a client, over a real handshake. */
async function handshake(server: TlsIdentity, client: ConnectionOptions, address = '127.0.0.1'): Promise<unknown> {
  const listener = createServer({ ...tlsOptions(server), requestCert: true, rejectUnauthorized: true });
  listener.on('secureConnection', (socket) => socket.end(JSON.stringify(identityOf(socket.getPeerCertificate()))));
  // The server's own side of a refusal; the client's is what is looked at.
  listener.on('tlsClientError', () => undefined);
  listener.listen(0, address);
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const socket = connect({ host: address, port, timeout: 10_000, ...client });
  try {
    let text = '';
    for await (const chunk of socket.setEncoding('utf8')) text += String(chunk);
    return text === '' ? null : JSON.parse(text);
  } finally {
    socket.destroy();
    listener.close();
  }
}

/** How a connection was refused; that it was taken is a failure of the test. */
async function refusal(attempt: Promise<unknown>): Promise<string> {
  try {
    assert.equal(await attempt, null, 'the server tells the client nothing');
    return 'closed without a word';
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return systemCode(error);
  }
}

test('both ends of a connection prove who they are', async () => {
  const folder = newFolder();
  const server = await identityIn(folder, agent('127.0.0.1', '::1'));
  const operator = await identityIn(folder, { role: 'operator' });
  assert.deepEqual(await handshake(server, tlsOptions(operator)), { role: 'operator', name: 'operator' });
  for (const servername of ['ant', 'localhost'])
    assert.deepEqual(await handshake(server, { ...tlsOptions(operator), servername }), {
      role: 'operator',
      name: 'operator',
    });
  assert.deepEqual(await handshake(server, tlsOptions(server), '::1'), { role: 'agent', name: 'ant' });
});

test('a server at an address or with a name that is not in its certificate is not taken for it', async () => {
  const folder = newFolder();
  const server = await identityIn(folder, agent('192.0.2.1'));
  const operator = await identityIn(folder, { role: 'operator' });
  await assert.rejects(handshake(server, tlsOptions(operator)), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  await assert.rejects(handshake(server, { ...tlsOptions(operator), servername: 'bee' }), {
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  });
});

test('a client without a certificate, or with one of another fleet, gets nothing', async () => {
  const folder = newFolder();
  const server = await identityIn(folder, agent('127.0.0.1'));
  const stranger = await identityIn(newFolder(), { role: 'operator' });
  const withoutCertificate = await refusal(handshake(server, { ca: server.authority }));
  assert.match(withoutCertificate, /^(ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED|ECONNRESET)$/);
  const ofAnotherFleet = await refusal(handshake(server, { ...tlsOptions(stranger), ca: server.authority }));
  assert.match(ofAnotherFleet, /^(closed without a word|ECONNRESET)$/);
});

test('a server of another fleet gets no client', async () => {
  const server = await identityIn(newFolder(), agent('127.0.0.1'));
  const operator = await identityIn(newFolder(), { role: 'operator' });
  await assert.rejects(handshake(server, tlsOptions(operator)), {
    code: /UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|SELF_SIGNED_CERT_IN_CHAIN/,
  });
});

test('a revoked certificate is taken by nobody who has the list; others and its successor are', async () => {
  const folder = newFolder();
  const bee: Holder = { role: 'agent', host: hostName('bee'), addresses: ['127.0.0.1'] };
  const [former, other] = [await identityIn(folder, agent('127.0.0.1')), await identityIn(folder, bee)];
  assert.equal(await revokeCertificate(folder, hostName('cat'), now), false);
  assert.equal(await revokeCertificate(folder, hostName('ant'), now), true);
  const server = await identityIn(folder, bee);
  assert.equal(server.certificate, other.certificate);
  assert.match(await refusal(handshake(server, tlsOptions(former))), /^(closed without a word|ECONNRESET)$/);
  const operator = await identityIn(folder, { role: 'operator' });
  assert.deepEqual(await handshake(server, tlsOptions(operator)), { role: 'operator', name: 'operator' });
  await assert.rejects(handshake(former, tlsOptions(operator)), { code: 'CERT_REVOKED' });
  assert.equal(await standingCertificate(folder, agent('127.0.0.1'), now), null);
  const successor = await identityIn(folder, agent('127.0.0.1'));
  assert.deepEqual(await handshake(server, tlsOptions(successor)), { role: 'agent', name: 'ant' });
  await revokeCertificate(folder, hostName('ant'), now);
  const again = await identityIn(folder, bee);
  for (const revoked of [former, successor])
    assert.match(await refusal(handshake(again, tlsOptions(revoked))), /^(closed without a word|ECONNRESET)$/);
});

test('a host that is revoked loses its monitor’s certificate, too, and no other host’s', async () => {
  const folder = newFolder();
  const monitor = (name: string): Holder => ({ role: 'monitor', host: hostName(name) });
  const [former, other] = [await identityIn(folder, monitor('ant')), await identityIn(folder, monitor('bee'))];
  assert.equal(await hasCertificate(folder, hostName('ant')), true);
  assert.equal(await revokeCertificate(folder, hostName('ant'), now), true);
  assert.equal(await hasCertificate(folder, hostName('ant')), false);
  const server = await identityIn(folder, agent('127.0.0.1'));
  assert.match(await refusal(handshake(server, tlsOptions(former))), /^(closed without a word|ECONNRESET)$/);
  assert.deepEqual(await handshake(server, tlsOptions(other)), { role: 'monitor', name: 'bee' });
  assert.notEqual((await identityIn(folder, monitor('ant'))).certificate, former.certificate);
});
