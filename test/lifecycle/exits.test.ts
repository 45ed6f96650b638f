// needs: agents
// How a process ends that holds a grant, and who gets the CPUs back although no process watches.
import { spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { openManager } from '../../lib/index.js';
import { makeStateDir } from '../support/state-dir.js';

const PACKAGE = fileURLToPath(new URL('../../dist', import.meta.url));

let stateDir: string;
let member: number;

beforeEach(async () => {
  stateDir = makeStateDir();
  const sleeper = spawn('sleep', ['1000'], { stdio: 'ignore' });
  onTestFinished(() => void sleeper.kill('SIGKILL'));
  member = sleeper.pid!;
  const manager = await openManager({ stateDir, sharedMember: false });
  await manager.addSharedMember({ pid: member });
  manager.close();
});

/** The member's CPUs while a process of `body` had a grant, and after its end. */
function around(body: string) {
  const script = `
    import { openManager, pin } from '${PACKAGE}/index.js';
    import { affinity } from '${PACKAGE}/entries/diagnostics.js';
    const stateDir = ${JSON.stringify(stateDir)};
    const grant = await pin({ cpu: 1, manager: { stateDir } });
    console.log(String(affinity(${member})));
    ${body}`;
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [during, child] = stdout.split('\n');
  return { during, child: Number(child), after: String(affinity(member)), status };
}

describe.runIf(affinity().size > 1)('a pinned process', () => {
  const all = String(affinity());

  it.each([
    ['has nothing more to do', '', 0],
    ['calls process.exit()', 'process.exit(3);', 3],
    ['calls it in a listener', "process.once('beforeExit', () => process.exit(4));", 4],
    ['dies of an error', "throw new Error('on purpose');", 1],
    ['exits while a listener of its own fails', "process.on('exit', () => { throw 1; }); process.exit();", 1],
  ])('gives its CPUs back when it %s', (_, body, code) => {
    const { during, after, status } = around(body);
    expect([status, after]).toEqual([code, all]);
    expect(during).not.toBe(all);
  });

  it('gives no CPU of another process back', async () => {
    const manager = await openManager({ stateDir, sharedMember: false });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    const script = `
      import { openManager } from '${PACKAGE}/index.js';
      const manager = await openManager({ stateDir: ${JSON.stringify(stateDir)} });
      process.exit();`;
    spawnSync(process.execPath, ['--input-type=module', '-e', script]);
    expect(affinity(member).intersection(grant.cpus).isEmpty).toBe(true);
    await grant.release();
  });

  it('gives no CPU back on which its child still runs', () => {
    const body = `console.log(grant.spawn('sleep', ['1000'], { stdio: 'ignore' }).pid); process.exit();`;
    const { during, child, after } = around(body);
    onTestFinished(() => void process.kill(child, 'SIGKILL'));
    expect(after).toBe(during);
    expect(after).not.toBe(all);
  });
});
