// Connect: connects to a runtime's socket.
import { connect, type Socket } from 'node:net';
import { NodeError } from '../base/errors.js';

/** @throws NodeError ERR_NRI_CONNECT, the kernel's code in `cause`; the signal's reason */
export function connectTo(path: string, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = connect(path);
    const settle = () => {
      socket.off('connect', open);
      signal.removeEventListener('abort', abort);
    };
    const open = () => {
      settle();
      socket.off('error', fail);
      resolve(socket);
    };
    const fail = (cause: NodeJS.ErrnoException) => {
      settle();
      const message = `NRI: no connection to ${path}: ${cause.code ?? cause.message}`;
      reject(new NodeError('ERR_NRI_CONNECT', message, { value: path, cause }));
    };
    const abort = () => {
      settle();
      socket.destroy();
      reject(signal.reason);
    };
    socket.on('connect', open);
    socket.on('error', fail);
    signal.addEventListener('abort', abort);
  });
}
