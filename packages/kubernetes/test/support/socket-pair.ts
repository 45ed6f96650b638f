// Two ends of a Unix socket.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export async function socketPair(): Promise<[Socket, Socket]> {
  const folder = mkdtempSync(join(tmpdir(), 'pair-'));
  const server = createServer({ pauseOnConnect: true });
  try {
    server.listen(join(folder, 'socket'));
    await once(server, 'listening');
    const near = connect(join(folder, 'socket'));
    const [[far]] = await Promise.all([
      once(server, 'connection') as Promise<[Socket]>,
      once(near, 'connect'),
    ]);
    return [near, far];
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
}
