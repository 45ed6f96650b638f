// Configuration: where the API server is, and the files that authenticate this process.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NodeError } from '../base/errors.js';

/** Where the kubelet mounts the files into each container of a pod with a service account. */
export const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface ApiServerFiles {
  /** `https://HOST:PORT`. */
  readonly url: string;
  /** PEM certificates of the CA that signed the server's. */
  readonly caFile: string;
  /** A file with a bearer token. */
  readonly tokenFile: string;
}

export interface InClusterConfiguration extends ApiServerFiles {
  /** The pod's namespace; null if unknown. */
  readonly namespace: string | null;
}

/**
 * The configuration of a process in a pod: the address from the environment, and the files of its
 * service account.
 * @throws ERR_NOT_IN_CLUSTER
 */
export function inClusterConfiguration(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  folder: string = SERVICE_ACCOUNT_FOLDER,
): InClusterConfiguration {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (!host || !/^\d{1,5}$/.test(port ?? '')) {
    throw new NodeError(
      'ERR_NOT_IN_CLUSTER',
      'no API server is known: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set',
      { value: { host, port }, valid: 'a process in a pod, or url, caFile and tokenFile' },
    );
  }
  return {
    url: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    caFile: join(folder, 'ca.crt'),
    tokenFile: join(folder, 'token'),
    namespace: textOf(join(folder, 'namespace')),
  };
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim() || null;
  } catch {
    return null;
  }
}
