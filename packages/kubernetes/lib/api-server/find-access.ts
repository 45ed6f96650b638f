// FindAccess: from options to the access to the API server.
import { NodeError } from '../base/errors.js';
import type { Access } from './access.js';
import { type ApiServerFiles, inClusterConfiguration } from './configuration.js';
import { readKubeconfig } from './kubeconfig.js';
import { WatchedFile } from './watched-file.js';

export interface AccessOptions extends Partial<ApiServerFiles> {
  /** A kubeconfig, in place of `url` and the files. */
  readonly kubeconfig?: string;
}

/** @throws ERR_NOT_IN_CLUSTER, ERR_KUBECONFIG, ERR_INVALID_OPTION */
export function accessOf(options: AccessOptions): Access {
  const access =
    options.kubeconfig === undefined ? accessOfFiles(options) : readKubeconfig(options.kubeconfig);
  if (URL.canParse(access.url) && new URL(access.url).protocol === 'https:') return access;
  throw new NodeError('ERR_INVALID_OPTION', `the URL of the API server is ${access.url}`, {
    value: access.url,
    valid: 'https://HOST:PORT: the token is sent with each request',
  });
}

// What is left out is as the kubelet gives it to a process in a pod.
function accessOfFiles({ url, caFile, tokenFile }: AccessOptions): Access {
  const isWhole = url !== undefined && caFile !== undefined && tokenFile !== undefined;
  const inCluster = isWhole ? undefined : inClusterConfiguration();
  return {
    url: url ?? inCluster!.url,
    ca: new WatchedFile(caFile ?? inCluster!.caFile),
    token: new WatchedFile(tokenFile ?? inCluster!.tokenFile),
    client: undefined,
  };
}
