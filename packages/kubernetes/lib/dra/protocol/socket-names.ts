// SocketNames: where a kubelet finds a DRA plugin. Pure.
import { join } from 'node:path';

export interface DraSockets {
  /** The kubelet's folder in which plugins announce themselves. */
  readonly registryFolder: string;
  /** The name of the socket in it. */
  readonly registration: string;
  /** The driver's own folder. */
  readonly pluginFolder: string;
  /** The name of the socket in it. */
  readonly endpoint: string;
}

/**
 * `instance`: the uid of the pod that the driver runs in. During a rolling update there are two
 * instances, each with sockets of its own; the kubelet calls the latest. Undefined: there is only one.
 */
export function socketNames(kubeletFolder: string, driver: string, instance?: string): DraSockets {
  const part = instance === undefined ? '' : `-${instance}`;
  return {
    registryFolder: join(kubeletFolder, 'plugins_registry'),
    registration: `${driver}${part}-reg.sock`,
    pluginFolder: join(kubeletFolder, 'plugins', driver),
    endpoint: `dra${part}.sock`,
  };
}

/** Whether a name in the registry is of an instance of this driver. */
export const isRegistrationOf = (driver: string) => (name: string) =>
  name.endsWith('-reg.sock') && (name === `${driver}-reg.sock` || name.startsWith(`${driver}-`));

/** Whether a name in the driver's folder is an endpoint. */
export const isEndpoint = (name: string) => /^dra(-.*)?\.sock$/.test(name);
