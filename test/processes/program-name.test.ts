// needs: process
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openManager } from '../../lib/index.js';
import { ownerName, programName } from '../../lib/processes/program-name.js';
import { makeStateDir } from '../support/state-dir.js';

const nameOf = (line: string) => programName(line.split(' '));

describe('the name of a program', () => {
  it.each([
    ['/usr/bin/server --password secret', 'server'],
    ['sh -c secret', 'sh'],
    ['postgres: user database secret', 'postgres:'],
    ['/usr/bin/node /opt/app/server.mjs secret', 'node server.mjs'],
    ['node --import numalign/preload --enable-source-maps server.mjs secret', 'node server.mjs'],
    ['node -e secret secret', 'node'],
    ['node -pe secret secret', 'node'],
    ['node - secret', 'node'],
    ['node', 'node'],
    ['', ''],
    ['/usr/bin/node /usr/bin/numalign run --cpus 1 -- /usr/bin/server secret', 'numalign run -- server'],
    ['/opt/bin/numalign run --cpus 1 -- node server.mjs secret', 'numalign run -- node server.mjs'],
    ['node /opt/node_modules/@numalign/cli/dist/main.cjs run --cpus 1 server secret', 'numalign run'],
    ['/usr/bin/node /usr/bin/numalign agent --output secret', 'numalign agent'],
  ])('of “%s” is “%s”', (line, name) => {
    expect(nameOf(line)).toBe(name);
  });
});

describe('the name of an owner', () => {
  it.each([
    ['node main.js run', 'node main.js'],
    ['/usr/bin/node /usr/bin/numalign run -- node server.mjs secret', 'node server.mjs'],
    ['/usr/bin/numalign run -- ./server --supervise', 'server'],
    ['/usr/bin/numalign run --supervise -- server secret', 'numalign run -- server'],
    ['server --supervise', 'server'],
  ])('of “%s” is “%s”', (line, name) => {
    expect(ownerName(line.split(' '))).toBe(name);
  });
});

/** Every file of a folder: its path and its text. */
function filesOf(folder: string): [string, string][] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path.slice(folder.length + 1), readFileSync(path, 'latin1')]);
}

describe('a state folder', () => {
  it('has no arguments of the programs that use it', async () => {
    const stateDir = makeStateDir();
    const script = `${stateDir}.mjs`;
    const numalign = fileURLToPath(new URL('../../dist/index.js', import.meta.url));
    writeFileSync(
      script,
      `import { openManager } from ${JSON.stringify(numalign)};
      const manager = await openManager({ stateDir: ${JSON.stringify(stateDir)}, cgroupRoot: null });
      await manager.acquire({ cpu: 1 });
      console.log('granted');
      await manager.acquire({ cpu: manager.topology.cpus.size - 1, wait: true });`,
    );
    const child = spawn(process.execPath, [script, '--password=secret'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(async () => {
      if (child.kill('SIGKILL')) await once(child, 'exit');
    });
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    await lines.next();
    // Another program, which is registered by its pid.
    const other = spawn('sh', ['-c', 'echo ready; cat # secret'], { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void other.stdin.end());
    await once(other.stdout, 'data');
    const manager = await openManager({ stateDir, cgroupRoot: null });
    onTestFinished(() => manager.close());
    await manager.addSharedMember({ pid: other.pid! });
    await expect.poll(() => readdirSync(join(stateDir, 'waiting')).length).toBeGreaterThan(0);
    const files = filesOf(stateDir);
    expect(files.filter(([, text]) => text.includes('secret'))).toEqual([]);
    const kinds = new Set(files.map(([path]) => path.split('/')[0]));
    expect([...kinds]).toEqual(
      expect.arrayContaining(['lock', 'members', 'owners', 'state.json', 'waiting']),
    );
    expect(manager.grants()).toMatchObject([
      { owner: { pid: child.pid, command: `node ${script.split('/').at(-1)}` } },
    ]);
  });
});
