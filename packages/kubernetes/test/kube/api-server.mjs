// A real kube-apiserver with its etcd, on loopback ports of its own and in a folder of its own.
import { spawn } from 'node:child_process';
import { createPrivateKey, randomUUID, sign } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { run } from '../../../../test/vm/debian-packages.mjs';

const ISSUER = 'https://kubernetes.default.svc';
const LONGEST_START_MS = 120_000;

async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.on('listening', resolve))));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** A CA, a certificate of it for loopback, and the key by which tokens of service accounts are signed. */
function makePki(folder) {
  const at = (name) => join(folder, name);
  const openssl = (...words) => run('openssl', words);
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    at('ca.key'),
    '-subj',
    '/CN=test-ca',
    '-days',
    '2',
    '-out',
    at('ca.crt'),
  );
  openssl('req', ...newKey, at('server.key'), '-subj', '/CN=kube-apiserver', '-out', at('server.csr'));
  writeFileSync(at('names'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth\n');
  const signing = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', '2'];
  const files = ['-in', at('server.csr'), '-extfile', at('names'), '-out', at('server.crt')];
  openssl('x509', '-req', ...signing, ...files);
  openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', at('accounts.key'));
}

/** A program that runs until it is ended; its output is in FOLDER/NAME.log. */
class Program {
  #child;
  #ended;

  constructor(folder, name, path, flags) {
    Object.assign(this, { folder, name, path, flags });
  }

  get log() {
    return join(this.folder, `${this.name}.log`);
  }

  start() {
    const log = openSync(this.log, 'a');
    const flags = Object.entries(this.flags).map(([flag, value]) => `--${flag}=${value}`);
    this.#child = spawn(this.path, flags, { stdio: ['ignore', log, log], cwd: this.folder });
    closeSync(log);
    this.#ended = new Promise((resolve) => {
      this.#child.on('exit', resolve);
      this.#child.on('error', resolve);
    });
  }

  /** `isReady`: asked again and again. */
  async until(isReady) {
    const begin = performance.now();
    while (!(await isReady())) {
      const isOver = this.#child.exitCode !== null || this.#child.signalCode !== null;
      if (isOver || performance.now() - begin > LONGEST_START_MS) {
        const lines = readFileSync(this.log, 'utf8').trimEnd().split('\n').slice(-15);
        throw new Error(`${this.name} is not ready:\n${lines.join('\n')}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async end(signal = 'SIGTERM') {
    if (!this.#child) return;
    this.#child.kill(signal);
    await this.#ended;
    this.#child = undefined;
  }
}

const base64url = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

export class KubeApiServer {
  #etcd;
  #server;
  #pki;
  #isPrepared = false;
  // Tokens; the server reads them as it starts.
  #admin = randomUUID();
  #powerless = randomUUID();

  /** `programs`: the paths of `etcd` and `apiServer`. `folder`: an empty one. */
  constructor(programs, folder) {
    this.programs = programs;
    this.folder = folder;
    this.#pki = join(folder, 'pki');
  }

  get caFile() {
    return join(this.#pki, 'ca.crt');
  }

  /** The token of an account with all rights, and of one without any. */
  get tokens() {
    return { admin: this.#admin, powerless: this.#powerless };
  }

  async start() {
    if (!this.#isPrepared) await this.#prepare();
    this.#etcd.start();
    await this.#etcd.until(() =>
      fetch(`${this.etcdUrl}/health`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    await this.startServer();
  }

  async startServer() {
    this.#server.start();
    await this.#server.until(() =>
      this.ask('GET', '/readyz').then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  }

  /** As a crash: etcd goes on, and has all objects. */
  killServer() {
    return this.#server.end('SIGKILL');
  }

  async close() {
    await this.#server?.end();
    await this.#etcd?.end();
  }

  async #prepare() {
    mkdirSync(this.#pki, { recursive: true, mode: 0o700 });
    makePki(this.#pki);
    const at = (name) => join(this.#pki, name);
    writeFileSync(
      at('tokens.csv'),
      `${this.#admin},admin,1,system:masters\n${this.#powerless},powerless,2\n`,
    );
    const [port, client, peer] = await freePorts(3);
    [this.url, this.etcdUrl] = [`https://127.0.0.1:${port}`, `http://127.0.0.1:${client}`];
    const peerUrl = `http://127.0.0.1:${peer}`;
    this.#etcd = new Program(this.folder, 'etcd', this.programs.etcd, {
      'data-dir': join(this.folder, 'etcd'),
      'listen-client-urls': this.etcdUrl,
      'advertise-client-urls': this.etcdUrl,
      'listen-peer-urls': peerUrl,
      'initial-advertise-peer-urls': peerUrl,
      'initial-cluster': `default=${peerUrl}`,
      'unsafe-no-fsync': true,
    });
    this.#server = new Program(this.folder, 'kube-apiserver', this.programs.apiServer, {
      'etcd-servers': this.etcdUrl,
      'bind-address': '127.0.0.1',
      'advertise-address': '127.0.0.1',
      'secure-port': port,
      'endpoint-reconciler-type': 'none',
      'service-cluster-ip-range': '10.96.0.0/24',
      'cert-dir': this.#pki,
      'tls-cert-file': at('server.crt'),
      'tls-private-key-file': at('server.key'),
      'token-auth-file': at('tokens.csv'),
      'authorization-mode': 'RBAC',
      'service-account-issuer': ISSUER,
      'service-account-key-file': at('accounts.key'),
      'service-account-signing-key-file': at('accounts.key'),
    });
    this.#isPrepared = true;
  }

  /** A token of a service account, as the kubelet asks for one for a pod. */
  async accountToken(namespace, name, seconds = 3600) {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: seconds },
    };
    const { status, object } = await this.ask('POST', path, body);
    if (status !== 201) throw new Error(`no token for ${namespace}/${name}: ${JSON.stringify(object)}`);
    return object.status.token;
  }

  /** The same token, as it was long ago. */
  endedToken(token) {
    const [header, payload] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
    const claims = { ...JSON.parse(payload), exp: 1_000_000_000, iat: 999_990_000, nbf: 999_990_000 };
    const text = `${base64url(JSON.parse(header))}.${base64url(claims)}`;
    const key = createPrivateKey(readFileSync(join(this.#pki, 'accounts.key')));
    const signature = sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' });
    return `${text}.${signature.toString('base64url')}`;
  }

  /** One request without this package's client; resolves with `status` and `object`. */
  ask(method, path, body, token = this.#admin) {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const options = { method, headers, ca: readFileSync(this.caFile), agent: false };
    return new Promise((resolve, reject) => {
      const sent = request(new URL(path, this.url), options, async (answer) => {
        let text = '';
        try {
          for await (const part of answer) text += part;
        } catch (error) {
          return reject(error);
        }
        const isJson = answer.headers['content-type']?.startsWith('application/json');
        return resolve({ status: answer.statusCode, object: isJson ? JSON.parse(text) : text });
      });
      sent.on('error', reject);
      sent.end(body && JSON.stringify(body));
    });
  }

  /** Creates an object of a manifest. */
  async apply(object) {
    const { apiVersion, kind, metadata } = object;
    const plural = kind === 'NodeResourceTopology' ? 'noderesourcetopologies' : `${kind.toLowerCase()}s`;
    const space = metadata.namespace ? `/namespaces/${metadata.namespace}` : '';
    const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const { status, object: answer } = await this.ask('POST', `${root}${space}/${plural}`, object);
    if (status !== 201) throw new Error(`${kind} ${metadata.name}: ${status} ${JSON.stringify(answer)}`);
    return answer;
  }
}
