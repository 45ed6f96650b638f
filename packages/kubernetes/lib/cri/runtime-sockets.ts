// RuntimeSockets: where container runtimes listen.
import { statSync } from 'node:fs';
import { NodeError } from '../base/errors.js';

/** The usual sockets of runtimes, the most common first. */
export const RUNTIME_SOCKETS = [
  '/run/containerd/containerd.sock',
  '/run/crio/crio.sock',
  '/run/cri-dockerd.sock',
  '/run/k3s/containerd/containerd.sock',
] as const;

/** The same variable as crictl's. */
const ENDPOINT = 'CONTAINER_RUNTIME_ENDPOINT';

function isSocket(path: string): boolean {
  try {
    return statSync(path).isSocket();
  } catch {
    // It does not exist, or is in a folder that this user may not read.
    return false;
  }
}

/**
 * The socket that CONTAINER_RUNTIME_ENDPOINT names, or the first existing one of
 * {@link RUNTIME_SOCKETS}.
 * @throws ERR_RUNTIME_UNREACHABLE
 */
export function findRuntimeSocket(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  sockets: readonly string[] = RUNTIME_SOCKETS,
): string {
  const path = environment[ENDPOINT];
  if (path) return path;
  const found = sockets.find(isSocket);
  if (found !== undefined) return found;
  throw new NodeError('ERR_RUNTIME_UNREACHABLE', `no container runtime listens at ${sockets.join(', ')}`, {
    value: sockets,
    valid: `the socket of a runtime, by an option or by ${ENDPOINT}`,
  });
}
