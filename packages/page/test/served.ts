// A page that is served over HTTP, of a simulated machine.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Manager, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { onTestFinished } from 'vitest';
import { machinePage, type PageOptions } from '../lib/index.js';

export interface Served {
  readonly manager: Manager;
  readonly server: Server;
  readonly port: number;
  /** Ends the page, not the server. */
  readonly close: () => void;
}

export async function serve(options: PageOptions = {}, synthetic = 'package:2 core:4 pu:2'): Promise<Served> {
  const manager = await openManager({ topology: await discover({ synthetic }) });
  const page = machinePage(manager, options);
  const server = createServer(page.handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => page.close();
  onTestFinished(() => {
    close();
    server.closeAllConnections();
    server.close();
    manager.close();
  });
  return { manager, server, port: (server.address() as AddressInfo).port, close };
}
