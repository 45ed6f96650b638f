// The network of a machine: tap0 in a network namespace that ends with QEMU. The host's networks
// are neither changed nor reached.
import { spawnSync } from 'node:child_process';
import { TAP_ADDRESS } from './shapes.mjs';

const SCRIPT = [
  'ip tuntap add name tap0 mode tap multi_queue',
  'ip addr add "$0" dev tap0',
  'ip link set tap0 up',
  'exec "$@"',
].join(' && ');

/** The words before a command that runs where tap0 is. The process stays the same. */
export const withTap = () => ['unshare', '--net', 'sh', '-c', SCRIPT, TAP_ADDRESS];

/** Why there is no tap0 here; undefined: there is one. */
export function whyNoTap() {
  const [program, ...words] = [...withTap(), 'true'];
  const { status, stderr, error } = spawnSync(program, words, { encoding: 'utf8' });
  if (status === 0) return undefined;
  return `no network namespace with a tap device can be had: ${error?.message ?? stderr.trim()}`;
}
