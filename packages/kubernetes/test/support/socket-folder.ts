// A folder for a test's sockets.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SocketFolder {
  readonly folder: string;
  readonly socketPath: string;
  remove(): void;
}

export function socketFolder(): SocketFolder {
  const folder = mkdtempSync(join(tmpdir(), 'nri-'));
  return {
    folder,
    socketPath: join(folder, 'nri.sock'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
