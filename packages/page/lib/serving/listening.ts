// A server that listens on one address: for programs that serve the page.
import type { RequestListener, Server } from 'node:http';
import { isIP, isIPv6 } from 'node:net';
import { NumalignError } from 'numalign';
import { kernelFacts } from 'numalign/tools';

export interface ListenAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

/** `127.0.0.1:9479`, `[::1]:9479`. */
export function addressText({ host, port }: ListenAddress): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** The reverse of {@link addressText}; undefined for anything but an IP address and a port. */
export function parseAddress(text: string): ListenAddress | undefined {
  const [, inBrackets, plain, digits] = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? [];
  const [host = '', version] = inBrackets === undefined ? [plain, 4] : [inBrackets, 6];
  const port = Number(digits);
  return isIP(host) === version && port <= 0xffff ? { host, port } : undefined;
}

/**
 * Starts to listen. Returns the server and its address with the actual port. `fail` receives later
 * errors, such as too few descriptors for a connection.
 * @throws ERR_SYSCALL if it cannot listen, for example because the port is in use
 */
export async function listen(
  address: ListenAddress,
  handler: RequestListener,
  fail: (error: Error) => void,
): Promise<{ readonly server: Server; readonly address: ListenAddress }> {
  // An import would also load what gives node:http its WebSocket, which takes 5 MB.
  const server = process.getBuiltinModule('node:http').createServer(handler);
  await new Promise<void>((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException) => reject(cannotListen(address, error));
    server.once('error', refuse);
    server.listen(address, () => {
      server.off('error', refuse);
      server.on('error', fail);
      resolve();
    });
  });
  const socket = server.address();
  const port = typeof socket === 'object' && socket !== null ? socket.port : address.port;
  return { server, address: { host: address.host, port } };
}

function cannotListen(address: ListenAddress, error: NodeJS.ErrnoException): NumalignError {
  const { code, message } = error;
  const why = code === 'EADDRINUSE' ? 'the port is in use' : message;
  return new NumalignError('ERR_SYSCALL', `cannot listen on ${addressText(address)}: ${why}`, {
    ...kernelFacts(error),
    value: addressText(address),
    syscall: 'listen',
  });
}

// The time for requests in progress.
const GRACE_MS = 500;

/** Ends the server and every connection. */
export async function end(server: Server): Promise<void> {
  const close = new Promise((resolve) => server.close(resolve));
  const timer = setTimeout(() => server.closeAllConnections(), GRACE_MS);
  await close;
  clearTimeout(timer);
}
