// An API server that has ResourceSlices and ResourceClaims, with the account and the rights of the
// examples. A proxy before it leaves out field selectors, which custom resources do not have.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { parseAllDocuments } from 'yaml';
import { ApiServer } from '../../dist/api-server/api-server.js';
import { prepareApiServer } from './build.mjs';
import { prepareEtcd } from './etcd.mjs';
import { DEFINITIONS } from './resource-definitions.mjs';

export const DRIVER = 'numalign.io';
export const NODE = 'worker-1';
export const SLICES = '/apis/resource.k8s.io/v1/resourceslices';
export const CLAIMS = '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims';

const EXAMPLES = new URL('../../deploy/kustomize/', import.meta.url);

const manifests = (name) =>
  parseAllDocuments(readFileSync(new URL(name, EXAMPLES), 'utf8')).map((document) => document.toJS());

export const until = async (condition, what) => {
  for (let i = 0; i < 3000; i++) {
    const value = await condition();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`it did not come: ${what}`);
};

async function openProxy({ url: target, folder }) {
  const at = (name) => readFileSync(join(folder, 'pki', name));
  const proxy = createServer({ cert: at('server.crt'), key: at('server.key') }, (asked, answer) => {
    const url = new URL(asked.url, target);
    url.searchParams.delete('fieldSelector');
    const { method, headers } = asked;
    const sent = request(url, { method, headers, ca: at('ca.crt'), agent: false }, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      got.pipe(answer);
      got.on('error', () => answer.destroy());
    });
    sent.on('error', () => answer.destroy());
    answer.on('close', () => sent.destroy());
    asked.pipe(sent);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return proxy;
}

export class ResourceServer {
  #proxy;
  #cleanups = [];

  /** `Server`: KubeApiServer. */
  static async open(Server) {
    const resources = new ResourceServer();
    resources.folder = mkdtempSync(join(tmpdir(), 'numalign-kube-'));
    const programs = { etcd: prepareEtcd(), apiServer: prepareApiServer() };
    resources.server = new Server(programs, resources.folder);
    await resources.#start();
    return resources;
  }

  async #start() {
    const { server } = this;
    await server.start();
    this.#proxy = await openProxy(server);
    const rights = [...manifests('base/numalign-node.yaml'), ...manifests('claims/rights.yaml')];
    for (const object of [...DEFINITIONS, ...rights]) await server.apply(object);
    for (const path of [SLICES, CLAIMS])
      await until(async () => (await server.ask('GET', path)).status === 200, `the definition of ${path}`);
    await server.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } });
  }

  /** The token of the account of the examples. */
  account() {
    return this.server.accountToken('numalign', 'numalign-node');
  }

  clientOf(token) {
    const tokenFile = join(this.folder, `token-${Math.random()}`);
    writeFileSync(tokenFile, token);
    const url = `https://127.0.0.1:${this.#proxy.address().port}`;
    const client = new ApiServer({ url, caFile: this.server.caFile, tokenFile });
    this.atEnd(() => client.close());
    return client;
  }

  /** The manager of a simulated machine. */
  async machine() {
    const topology = await discover({ synthetic: 'numa:4(memory=64GB) core:16 pu:2' });
    const manager = await openManager({ topology, policy: 'single-numa-node', reservedSystemCPUs: '0' });
    this.atEnd(() => manager.close());
    return manager;
  }

  /** Called when a test has ended. */
  atEnd(cleanup) {
    this.#cleanups.push(cleanup);
  }

  async endTest() {
    for (const cleanup of this.#cleanups.splice(0).reverse()) await cleanup();
    for (const path of [SLICES, CLAIMS]) await this.server.ask('DELETE', path);
  }

  async close() {
    this.#proxy?.closeAllConnections();
    this.#proxy?.close();
    await this.server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
