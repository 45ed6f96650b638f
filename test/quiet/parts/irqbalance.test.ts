// needs: nothing
// A server like irqbalance 1.9.2: one command per connection; a new list is in force from its next
// round on.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { discover, type Topology } from '../../../lib/entries/topology.js';
import { askSocket, banCpus, irqbalanceState } from '../../../lib/quiet/kernel/irqbalance-client.js';
import { irqbalanceSettings, rivalObstacles } from '../../../lib/quiet/parts/irqbalance.js';
import { errorOf } from '../../support/error-of.js';
import { kernelTree } from '../../support/kernel-tree.js';
import { demandOf, quiet } from '../../support/quiet.js';

const SOCKET = '/run/irqbalance/irqbalance812.sock';
// A command may have spaces and parentheses.
const stat = (start: number) => `812 (irq) (balance) S 1 ${'0 '.repeat(17)}${start} 0 0`;
const tree = (start = 5000, more: Record<string, string> = {}) =>
  kernelTree({ '/proc/812/comm': 'irqbalance', '/proc/812/stat': stat(start), [SOCKET]: '', ...more });

let machine: Topology;
beforeAll(async () => {
  machine = await discover({ synthetic: 'numa:1 core:4 pu:1' });
});
afterEach(() => void vi.useRealTimers());

const demand = (cpus = '2') => demandOf(machine, quiet(cpus));

/** Remembers its commands, and answers as before its next round. */
function deaf(banned: string, interval = 10) {
  const commands: string[] = [];
  const state = { banned };
  const ask = async (path: string, text: string) => {
    commands.push(`${path} ${text}`);
    return text === 'setup' ? `SLEEP ${interval} IRQ 24 LOAD 1 DIFF 0 CLASS 0 BANNED ${state.banned}` : '';
  };
  return { commands, state, ask };
}

describe('irqbalance', () => {
  it('is a setting of the CPUs that it keeps interrupts off', async () => {
    const { ask, commands } = deaf('00000000,00000009');
    const [setting] = irqbalanceSettings(tree(), ask);
    expect(await setting!.read()).toBe('0,3');
    expect(setting!.target('0,3', demand('2'))).toBe('0,2-3');
    await setting!.write('0,2-3');
    expect(commands).toEqual([`${SOCKET} setup`, `${SOCKET} settings cpus 0,2-3`]);
  });

  it('disturbs the quiet CPUs that are not among them', () => {
    const [setting] = irqbalanceSettings(tree(), deaf('0').ask);
    expect(String(setting!.disturbs('0,2', demand('1-2')))).toBe('1');
  });

  it('is distinguished from a later process with its pid by its start time', () => {
    const identity = (start: number) => irqbalanceSettings(tree(start), deaf('0').ask)[0]!.identity;
    expect(identity(5000)).toBe('812 5000');
    expect(identity(6000)).toBe('812 6000');
  });

  it('is absent if a killed one has left its socket', () => {
    const files = tree();
    files.texts.delete('/proc/812/comm');
    expect(irqbalanceSettings(files, deaf('0').ask)).toEqual([]);
    files.texts.set('/proc/812/comm', 'another');
    expect(irqbalanceSettings(files, deaf('0').ask)).toEqual([]);
  });

  it('has the written list until its next round, and then its own answer', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { ask, state } = deaf('0', 3);
    const setting = () => irqbalanceSettings(tree(7000), ask)[0]!;
    const first = setting();
    expect(await first.read()).toBe('');
    await first.write('2');
    expect(await setting().read()).toBe('2');
    vi.advanceTimersByTime(3999);
    expect(await setting().read()).toBe('2');
    vi.advanceTimersByTime(2);
    state.banned = '8';
    expect(await setting().read()).toBe('3');
  });

  it('is asked again if another process has its pid', async () => {
    const { ask } = deaf('1');
    await irqbalanceSettings(tree(8000), ask)[0]!.write('2');
    expect(await irqbalanceSettings(tree(8001), ask)[0]!.read()).toBe('0');
  });

  it('is absent once no process listens', async () => {
    const ask = () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
    expect(await irqbalanceSettings(tree(9000), ask)[0]!.read()).toBeUndefined();
  });

  it('ends with EPERM if it does not answer this user', async () => {
    const error = await errorOf(() => irqbalanceSettings(tree(9001), async () => '')[0]!.read());
    expect(error).toMatchObject({ code: 'EPERM' });
  });

  it('has an abstract socket if it could make no file, with NULs up to its end', async () => {
    const files = tree(9100, {
      '/proc/net/unix': `Num RefCount Protocol Flags Type St Inode Path
0: 00000002 00000000 00010000 0001 01 21550 @irqbalance812.sock@@@@
0: 00000002 00000000 00010000 0001 01 21551 /run/systemd/notify`,
    });
    files.texts.delete(SOCKET);
    const { ask, commands } = deaf('0');
    const [setting, ...more] = irqbalanceSettings(files, ask);
    expect(more).toEqual([]);
    expect(setting!.path).toBe('@irqbalance812.sock@@@@');
    await setting!.read();
    expect(commands).toEqual(['\0irqbalance812.sock\0\0\0\0 setup']);
  });

  it('is a rival only if it has no socket', () => {
    const running = [{ pid: 812, name: 'irqbalance' }];
    expect(rivalObstacles(tree(), running, machine.cpus)).toEqual([]);
    const files = tree();
    files.texts.delete(SOCKET);
    expect(rivalObstacles(files, running, machine.cpus)).toEqual([
      expect.stringMatching(/^irqbalance \(process 812\)/),
    ]);
  });
});

describe('a command to irqbalance', () => {
  it('bans its own choice of CPUs by a word, since the empty list ends the process', async () => {
    const { ask, commands } = deaf('0');
    await banCpus(ask, SOCKET, '');
    expect(commands).toEqual([`${SOCKET} settings cpus NULL`]);
  });

  it('is refused if irqbalance would cut it off', async () => {
    const { ask, commands } = deaf('0');
    const list = Array.from({ length: 162 }, (_, i) => 2 * i).join(',');
    expect(await errorOf(() => banCpus(ask, SOCKET, list))).toMatchObject({ code: 'E2BIG' });
    expect(commands).toEqual([]);
  });
});

/** A socket whose server answers a command with `answer`; `undefined`: not at all. */
async function serve(answer: (command: string) => string | undefined): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-irqbalance-'));
  const path = join(folder, 'socket');
  const server = createServer((socket) => {
    socket.on('data', (command) => {
      const text = answer(String(command));
      if (text !== undefined) socket.end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });
  return path;
}

describe('the socket of irqbalance', () => {
  it('takes one command per connection, and answers until it closes', async () => {
    const path = await serve((command) => (command === 'setup' ? 'SLEEP 2 BANNED 00000002' : ''));
    expect(await irqbalanceState(askSocket, path)).toEqual({ interval: 2, banned: '00000002' });
  });

  it('ends with ETIMEDOUT without an answer', async () => {
    const path = await serve(() => undefined);
    expect(await errorOf(() => askSocket(path, 'setup'))).toMatchObject({ code: 'ETIMEDOUT' });
  });

  it('ends with the error of the kernel if there is none', async () => {
    expect(await errorOf(() => askSocket('/missing/socket', 'setup'))).toMatchObject({ code: 'ENOENT' });
  });
});
