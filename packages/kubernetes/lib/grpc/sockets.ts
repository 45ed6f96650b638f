// Sockets: Unix sockets that a kubelet calls.
import { readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Server } from '@grpc/grpc-js';
import { NodeError } from '../base/errors.js';
import { grpc } from '../base/late-packages.js';

// sockaddr_un(7), with its final zero.
const LONGEST_PATH = 107;

/** @throws ERR_SOCKET_PATH if the path is too long for Linux */
export function checkSocketPath(path: string): void {
  if (Buffer.byteLength(path) <= LONGEST_PATH) return;
  throw new NodeError('ERR_SOCKET_PATH', `the path of the plugin's socket is too long: ${path}`, {
    value: path,
    valid: `at most ${LONGEST_PATH} bytes`,
  });
}

/** Whether a process listens on a socket; a process that has ended leaves its file. */
export function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'),
    );
  });
}

/** Removes sockets of ended processes. */
export async function removeDead(folder: string, isOurs: (name: string) => boolean): Promise<void> {
  for (const name of readdirSync(folder).filter(isOurs)) {
    const path = join(folder, name);
    if (!(await isServed(path))) rmSync(path, { force: true });
  }
}

/** @throws what bind(2) refuses */
export function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) =>
    server.bindAsync(`unix://${path}`, grpc().ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    ),
  );
}
