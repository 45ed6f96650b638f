// A connection to a runtime's socket.
import { connect, type Socket } from 'node:net';
import { NodeError } from '../base/errors.js';

/**
 * @throws NodeError ERR_NRI_CONNECT, the kernel's code in `cause`; the signal's reason
 */
export function connectTo(path: string, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = connect(path);
    const settle = (finish: () => void) => () => {
      socket.removeAllListeners();
      signal.removeEventListener('abort', abort);
      finish();
    };
    const abort = settle(() => {
      socket.on('error', () => {});
      socket.destroy();
      reject(signal.reason);
    });
    signal.addEventListener('abort', abort);
    socket.on(
      'connect',
      settle(() => resolve(socket)),
    );
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      const message = `NRI: no connection to ${path}: ${cause.code ?? cause.message}`;
      settle(() => reject(new NodeError('ERR_NRI_CONNECT', message, { value: path, cause })))();
    });
  });
}
