import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiServer } from '../../lib/api-server/api-server.js';
import { readKubeconfig } from '../../lib/api-server/kubeconfig.js';
import { thrownBy } from '../support/nri-objects.js';
import { FakeServer, json, makePki, type Pki } from './fake-server.js';

let pki: Pki;

beforeAll(() => {
  pki = makePki();
});

afterAll(() => rmSync(pki.folder, { recursive: true }));

const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64');

/** A kubeconfig in the folder of the certificates. */
function fileOf(cluster: object, user: object, more: object = {}): string {
  const file = join(pki.folder, 'kubeconfig');
  const document = {
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    ...more,
  };
  writeFileSync(file, JSON.stringify(document));
  return file;
}

const NODES = { group: '', version: 'v1', plural: 'nodes' };

describe('A kubeconfig', () => {
  it('says where the API server is, and with which token to ask', async () => {
    const server = await FakeServer.open(pki, (_seen, answer) => json(answer, { metadata: { name: 'n' } }));
    const cluster = { server: server.url, 'certificate-authority': 'ca.crt' };
    writeFileSync(join(pki.folder, 'token'), 'from a file\n');
    for (const user of [{ token: 'inline' }, { tokenFile: 'token' }]) {
      const client = new ApiServer({ kubeconfig: fileOf(cluster, user) });
      await client.get(NODES, 'n');
      client.close();
    }
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer inline',
      'Bearer from a file',
    ]);
  });

  it('has certificates as text, too, and then no token', () => {
    const ca = readFileSync(pki.caFile);
    const file = fileOf(
      { server: 'https://h:1', 'certificate-authority-data': base64(ca) },
      { 'client-certificate-data': base64(pki.certificate), 'client-key-data': base64(pki.key) },
    );
    const access = readKubeconfig(file);
    expect(access.ca?.read()).toBe(String(ca));
    expect(access.client?.key.read()).toBe(String(pki.key));
    expect(access.token).toBeUndefined();
  });

  const CLUSTER = { server: 'https://h:1' };
  it.each([
    [CLUSTER, { exec: { command: 'aws' } }, {}, /user u: exec is not supported/],
    [CLUSTER, {}, {}, /no token and no client certificate/],
    [CLUSTER, { 'client-certificate': 'a' }, {}, /needs its key/],
    [{ ...CLUSTER, 'insecure-skip-tls-verify': true }, { token: 'x' }, {}, /insecure-skip-tls-verify/],
    [{}, { token: 'x' }, {}, /its cluster has no server/],
    [CLUSTER, { token: 'x' }, { 'current-context': '' }, /no current-context/],
    [CLUSTER, { token: 'x' }, { 'current-context': 'there' }, /no context there/],
    [CLUSTER, { token: 'x' }, { users: null }, /no user u/],
  ])('is refused if something is missing or not supported: %j %j %j', (cluster, user, more, message) => {
    const error = thrownBy(() => readKubeconfig(fileOf(cluster, user, more)));
    expect(error).toMatchObject({ code: 'ERR_KUBECONFIG', message: expect.stringMatching(message) });
  });

  it('is refused if it cannot be read', () => {
    expect(() => new ApiServer({ kubeconfig: '/none' })).toThrow(/\/none: it cannot be read/);
  });
});
