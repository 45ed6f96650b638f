// Kubeconfig: where the API server is, and how this process authenticates itself, from the file that
// kubectl uses: its current context.
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { NodeError } from '../base/errors.js';
import { yaml } from '../base/late-packages.js';
import type { Access, Secret } from './access.js';
import { WatchedFile } from './watched-file.js';

type Entry = Readonly<Record<string, unknown>>;

// They need another program, or what no request here has.
const UNSUPPORTED = {
  user: ['exec', 'auth-provider', 'username', 'password', 'as', 'as-groups', 'as-uid', 'as-user-extra'],
  cluster: ['insecure-skip-tls-verify', 'proxy-url', 'tls-server-name'],
};
const SUPPORTED = 'token, tokenFile or a client certificate, and a certificate authority';

class Kubeconfig {
  readonly #file: string;
  readonly #document: Entry;

  constructor(file: string) {
    this.#file = file;
    try {
      this.#document = yaml().parse(readFileSync(file, 'utf8')) ?? {};
    } catch (cause) {
      this.fail(`it cannot be read: ${(cause as Error).message}`, 'a kubeconfig, as kubectl reads it', cause);
    }
  }

  fail(why: string, valid: string, cause?: unknown): never {
    throw new NodeError('ERR_KUBECONFIG', `${this.#file}: ${why}`, { value: this.#file, valid, cause });
  }

  get context(): Entry {
    const name = this.#document['current-context'];
    return name
      ? this.#find('context', name)
      : this.fail('it has no current-context', 'kubectl config use-context NAME');
  }

  /** The cluster or user of this name, without anything that is not supported. */
  entry(kind: 'cluster' | 'user', name: unknown): Entry {
    const found = this.#find(kind, name);
    const wrong = UNSUPPORTED[kind].find((key) => found[key]);
    return wrong === undefined ? found : this.fail(`${kind} ${name}: ${wrong} is not supported`, SUPPORTED);
  }

  #find(kind: 'context' | 'cluster' | 'user', name: unknown): Entry {
    const list = this.#document[`${kind}s`];
    const found = Array.isArray(list) ? list.find((entry) => entry?.name === name)?.[kind] : undefined;
    return found ?? this.fail(`it has no ${kind} ${name}`, `an entry of ${kind}s with that name`);
  }

  /** What an entry has as `KEY-data`, or in the file that `KEY` names, relative to this one's folder. */
  pem(entry: Entry, key: string): Secret | undefined {
    const data = entry[`${key}-data`];
    return data ? fixed(Buffer.from(String(data), 'base64').toString('utf8')) : this.file(entry[key]);
  }

  file(path: unknown): Secret | undefined {
    return path ? new WatchedFile(resolve(dirname(this.#file), String(path))) : undefined;
  }
}

const fixed = (text: string): Secret => ({ read: () => text, readAgain: () => text });

/** The current context. @throws ERR_KUBECONFIG */
export function readKubeconfig(file: string): Access {
  const kubeconfig = new Kubeconfig(file);
  const { context } = kubeconfig;
  const cluster = kubeconfig.entry('cluster', context.cluster);
  const user = kubeconfig.entry('user', context.user);
  const token = kubeconfig.file(user.tokenFile) ?? (user.token ? fixed(String(user.token)) : undefined);
  const [certificate, key] = ['client-certificate', 'client-key'].map((name) => kubeconfig.pem(user, name));
  if (!cluster.server) kubeconfig.fail('its cluster has no server', 'server: https://HOST:PORT');
  if (!certificate !== !key) kubeconfig.fail('a client certificate needs its key', SUPPORTED);
  if (!token && !certificate) kubeconfig.fail('its user has no token and no client certificate', SUPPORTED);
  return {
    url: String(cluster.server),
    ca: kubeconfig.pem(cluster, 'certificate-authority'),
    token,
    client: certificate && key && { certificate, key },
  };
}
