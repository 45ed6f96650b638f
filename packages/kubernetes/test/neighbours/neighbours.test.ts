// Other programs that place the CPUs of containers: in folders of the test, and one that runs.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { findNeighbours, type NeighbourPlaces } from '../../lib/neighbours/neighbours.js';
import { clientsIn } from '../../lib/neighbours/socket-peers.js';
import { UndoneContainers } from '../../lib/neighbours/undone-containers.js';
import { conflictIn, conflictText } from '../../lib/nri/plugin-conflict.js';

let folder: string;
const at = (name: string) => join(folder, name);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'numalign-neighbours-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

/** Places of the test, in which only these processes run. */
function places(processes: Record<number, string>, connected: readonly number[] = []): NeighbourPlaces {
  for (const [pid, words] of Object.entries(processes)) {
    mkdirSync(at(`proc/${pid}`), { recursive: true });
    writeFileSync(at(`proc/${pid}/cmdline`), `${words.replaceAll(' ', '\0')}\0`);
  }
  const clients = async () => connected;
  return { socketPath: at('nri.sock'), pluginFolder: at('plugins'), procFolder: at('proc'), clients };
}

const AGENT = 'node /usr/local/bin/numalign-node run';

describe('neighbours', () => {
  it('are plugins that the runtime starts', async () => {
    mkdirSync(at('plugins'));
    for (const name of ['10-balloons', '20-logger', 'README']) writeFileSync(at(`plugins/${name}`), '');
    expect(await findNeighbours(places({}))).toEqual([
      { name: 'balloons', at: at('plugins/10-balloons'), isPlacing: true },
      { name: 'logger', at: at('plugins/20-logger'), isPlacing: false },
    ]);
  });

  it('are clients of its socket, but for the agent itself', async () => {
    const processes = { 2: '', 5: AGENT, 7: '/bin/logger -idx 10', 8: AGENT };
    expect(await findNeighbours(places(processes, [5, 7, 9]))).toEqual([
      { name: 'logger', at: 'pid 7', isPlacing: false },
    ]);
    expect(await findNeighbours(places(processes, [5, 8]))).toEqual([
      { name: 'numalign-node', at: 'pid 8', isPlacing: true },
    ]);
    expect(await findNeighbours(places(processes, [process.pid, 5]))).toEqual([
      { name: 'numalign-node', at: 'pid 5', isPlacing: true },
    ]);
  });

  it('are known programs, by whatever means they place CPUs', async () => {
    const processes = { 3: '/usr/bin/koordlet -v 4', 4: 'sh -c koordlet', 5: '/dracpu' };
    expect(await findNeighbours(places(processes))).toEqual([
      { name: 'koordlet', at: 'pid 3', isPlacing: true },
      { name: 'dracpu', at: 'pid 5', isPlacing: true },
    ]);
  });

  it('are seen by ss(8) as they are', async (context) => {
    try {
      execFileSync('ss', ['-V']);
    } catch {
      return context.skip();
    }
    const server = createServer(() => {});
    await new Promise<void>((resolve) => server.listen(at('nri.sock'), resolve));
    onTestFinished(() => void server.close());
    const program = `require('net').connect(process.argv[1], () => console.log(''))`;
    const client = spawn(process.execPath, ['-e', program, at('nri.sock')]);
    onTestFinished(() => void client.kill());
    await once(client.stdout, 'data');
    const { clients: _, ...real } = places({});
    expect(await findNeighbours({ ...real, procFolder: '/proc' })).toContainEqual({
      ...{ name: 'node', at: `pid ${client.pid}`, isPlacing: false },
    });
  });
});

it('Clients are found by the inode of their peer', () => {
  const text = [
    'u_str ESTAB 0      0      /run/nri/nri.sock 31 * 30 users:(("containerd",pid=1,fd=9))',
    'u_str ESTAB 0      0      * 30 * 31 users:(("plugin",pid=7,fd=3),("child",pid=8,fd=3))',
    'u_str ESTAB 0      0      /run/other.sock 41 * 40 users:(("containerd",pid=1,fd=8))',
    'u_str ESTAB 0      0      * 40 * 41 users:(("kubelet",pid=9,fd=3))',
    'u_str ESTAB 0      0      /run/nri/nri.sock 51 * 50 users:(("containerd",pid=1,fd=7))',
    'u_dgr ESTAB 0      0      * 60 * 61',
  ].join('\n');
  expect(clientsIn(text, (path) => path === '/run/nri/nri.sock')).toEqual([7, 8]);
});

describe('a container that was not created', () => {
  const balloons = { name: 'balloons', at: 'pid 7', isPlacing: true };

  it('is logged with who else places CPUs, once a minute', async () => {
    const log = vi.fn();
    const undone = new UndoneContainers({ socketPath: '' }, log, async () => [balloons]);
    for (let i = 0; i < 3; i++) undone.report('numalign:default/a/main');
    await vi.waitFor(() => expect(log).toHaveBeenCalled(), { timeout: 60_000 });
    expect(log.mock.calls).toEqual([
      [
        'warn',
        'the runtime did not create numalign:default/a/main after it was placed: balloons (pid 7) ' +
          'places CPUs, too: end the one or the other',
      ],
    ]);
  });

  it('is not logged otherwise: it has other reasons', async () => {
    const log = vi.fn();
    new UndoneContainers({ socketPath: '' }, log, async () => []).report('a');
    await new Promise(setImmediate);
    expect(log).not.toHaveBeenCalled();
  });
});

describe('a conflict', () => {
  const text =
    'failed to create containerd container: plugins "10-balloons" and "90-numalign" both tried to set CPU set: x';

  it('names the other plugin', () => {
    const conflict = conflictIn(text)!;
    expect(conflict).toEqual({ plugins: ['10-balloons', '90-numalign'], subject: 'CPU set' });
    expect(conflictText(conflict, '90-numalign')).toMatch(
      /^the plugin 10-balloons also sets CPU set: run only one/,
    );
  });

  it('is no other error', () => {
    expect(conflictIn('plugin "10-balloons" failed')).toBeUndefined();
  });
});
