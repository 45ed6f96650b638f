// needs: process
// What new users type wrongly: each error has a code, and names what to write instead.
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, type Grant, type Manager, NodeSet, openManager, pin } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

/** The input, the code, and words of the remedy; values of the wrong types are the point. */
type Case<T extends unknown[] = []> = [input: string, code: string, remedy: string, (...given: T) => unknown];

const check = async (code: string, remedy: string, action: () => unknown) => {
  const error = await errorOf(action);
  expect(error.message).toContain(remedy);
  expect(error.code).toBe(code);
};

const wrong = (value: unknown) => value as never;

const WHOLE = 'cpu must be a whole number of CPUs from 1 to 65535';
const OPTION = 'ERR_INVALID_OPTION';

describe('pin() with', () => {
  const cases: Case[] = [
    ['0', OPTION, WHOLE, () => pin(0)],
    ['1.5', OPTION, 'with mixed: true an amount such as 2.5', () => pin(1.5)],
    ['1, options', OPTION, 'as in pin({ cpu: 2, name })', () => pin(wrong(1), wrong({ name: 'a' }))],
    ['null', OPTION, 'a request such as { cpu: 2 }, or the ids of CPUs', () => pin(wrong(null))],
    ['true', OPTION, 'a number of CPUs, a request such as', () => pin(wrong(true))],
    ['{}', OPTION, WHOLE, () => pin(wrong({}))],
    ['cpus', OPTION, 'did you mean "cpu"?', () => pin(wrong({ cpus: 1 }))],
    ['"1"', OPTION, WHOLE, () => pin(wrong({ cpu: '1' }))],
    ['NaN', OPTION, WHOLE, () => pin({ cpu: Number.NaN })],
    ['-1', OPTION, WHOLE, () => pin({ cpu: -1 })],
    ['1e9', OPTION, WHOLE, () => pin({ cpu: 1e9 })],
    ['1n', OPTION, WHOLE, () => pin(wrong({ cpu: 1n }))],
    [
      'stateDir',
      OPTION,
      'did you mean pin({ manager: { stateDir } })?',
      () => pin(wrong({ cpu: 1, stateDir: '/tmp/x' })),
    ],
  ];
  it.each(cases)('%s: %s, %s', (_, code, remedy, action) => check(code, remedy, action));
});

describe('stateDir', () => {
  const cases: Case<[folder: string]>[] = [
    ['of no root', OPTION, 'such as path.resolve() returns', () => 'numalign'],
    ['~', OPTION, 'use os.homedir()', () => '~/numalign'],
    ['empty', OPTION, "left out for the machine's folder", () => ''],
    ['with NUL', OPTION, 'without NUL', () => '/tmp/a\0b'],
    ['of 5,000 characters', OPTION, '4095 bytes', () => `/tmp/${'a/'.repeat(2500)}`],
    ['with a long name', OPTION, '255 a name', () => `/tmp/${'a'.repeat(256)}`],
    ['a file', 'ERR_STATE_FOLDER', 'name a folder', () => '/etc/hostname'],
    ['below a file', 'ERR_STATE_FOLDER', 'name another', () => '/etc/hostname/state'],
    ['below nothing', 'ERR_STATE_FOLDER', 'make it, or use another', (folder) => `${folder}/none/state`],
    [
      'of all users',
      'ERR_STATE_FOLDER',
      'use your own, such as',
      (folder) => {
        mkdirSync(folder);
        chmodSync(folder, 0o1777);
        return folder;
      },
    ],
    ['in sysfs', 'ERR_STATE_FOLDER', 'use a folder of your own', () => '/sys/numalign'],
  ];
  it.each(cases)('%s: %s, %s', (_, code, remedy, path) =>
    check(code, remedy, () => openManager({ stateDir: path(makeStateDir()) as string })),
  );

  it('may have any characters of a name', async () => {
    const folder = makeStateDir();
    mkdirSync(folder);
    const manager = await openManager({ stateDir: join(folder, 'ünï🚀') });
    manager.close();
  });
});

describe('acquire() with', () => {
  const NAME = 'a text of 1 to 253 printable characters';
  const QUANTITY = 'ERR_INVALID_QUANTITY';
  const cases: Case<[Manager]>[] = [
    [
      'an option of openManager',
      OPTION,
      'did you mean openManager({ stateDir })?',
      (manager) => manager.acquire(wrong({ cpu: 1, stateDir: '/tmp/x' })),
    ],
    ['no name', OPTION, NAME, (manager) => manager.acquire({ cpu: 1, name: '' })],
    ['a name of two lines', OPTION, NAME, (manager) => manager.acquire({ cpu: 1, name: '🚀\n' })],
    ['a name of 300', OPTION, NAME, (manager) => manager.acquire({ cpu: 1, name: 'x'.repeat(300) })],
    ['4GB', QUANTITY, 'did you mean "4Gi" or "4G"?', (manager) => manager.acquire({ cpu: 1, memory: '4GB' })],
    ['4 Gi', QUANTITY, 'did you mean "4Gi"?', (manager) => manager.acquire({ cpu: 1, memory: '4 Gi' })],
    ['4kb', QUANTITY, 'did you mean "4Ki" or "4k"?', (manager) => manager.acquire({ cpu: 1, memory: '4kb' })],
    ['4 bytes', QUANTITY, 'did you mean "4"?', (manager) => manager.acquire({ cpu: 1, memory: '4 bytes' })],
    [
      'much',
      QUANTITY,
      'such as 2, "500m", "1.5Gi"',
      (manager) => manager.acquire({ cpu: 1, memory: 'much' }),
    ],
    ['1e30', QUANTITY, 'a number at most 2^53-1', (manager) => manager.acquire({ cpu: 1, memory: 1e30 })],
    ['500m', OPTION, "such as '500Mi'", (manager) => manager.acquire({ cpu: 1, memory: '500m' })],
    ['0.5', OPTION, 'whole bytes', (manager) => manager.acquire({ cpu: 1, memory: 0.5 })],
    [
      '1Ti',
      'ERR_INSUFFICIENT_MEMORY',
      'nor have all together, with 16 GiB of memory',
      (manager) => manager.acquire({ cpu: 1, memory: '1Ti' }),
    ],
    [
      'hugepages-2M',
      OPTION,
      'named hugepages-2Mi (no machine has pages of 2000000 bytes)',
      (manager) => manager.acquire({ cpu: 1, resources: { 'hugepages-2M': '4Mi' } }),
    ],
    [
      'hugepages-2MB',
      OPTION,
      'such as hugepages-2Mi',
      (manager) => manager.acquire({ cpu: 1, resources: { 'hugepages-2MB': '4Mi' } }),
    ],
    [
      '1.5 hugepages',
      OPTION,
      'whole pages of 2097152 bytes, such as 4Mi',
      (manager) => manager.acquire({ cpu: 1, resources: { 'hugepages-2Mi': '3Mi' } }),
    ],
    [
      'unknown devices',
      OPTION,
      'registerDevices',
      (manager) => manager.acquire({ cpu: 1, resources: { 'nvidia.com/gpu': 1 } }),
    ],
    [
      'a misspelt policy',
      OPTION,
      "'single-numa-node'",
      (manager) => manager.acquire({ cpu: 1, policy: wrong('singel-numa-node') }),
    ],
    [
      'a misspelt level',
      OPTION,
      "'cpuset'",
      (manager) => manager.acquire({ cpu: 1, require: wrong('cpusets') }),
    ],
    [
      'a number for signal',
      OPTION,
      'an AbortSignal',
      (manager) => manager.acquire({ cpu: 1, signal: wrong(5) }),
    ],
    [
      'too many CPUs',
      'ERR_INSUFFICIENT_CPUS',
      'at most 7 can be granted now',
      (manager) => manager.acquire({ cpu: 8 }),
    ],
  ];
  it.each(cases)('%s: %s, %s', async (_, code, remedy, action) => {
    const manager = await simulate('package:2 [numa(memory=8GiB)] core:4 pu:1');
    await check(code, remedy, () => action(manager));
  });

  it('a level that needs cgroups: ERR_ENFORCEMENT, and the command that allows them', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    const remedy = '`numalign configure --cgroup-root /numalign`';
    await check('ERR_ENFORCEMENT', remedy, () => manager.acquire({ cpu: 1, require: 'partition' }));
    manager.close();
  });
});

describe('CpuSet with', () => {
  const ID = 'ERR_INVALID_ARGUMENT';
  const cases: Case[] = [
    ['a list as an id', ID, 'CpuSet.parse() reads lists such as "0-3,8"', () => CpuSet.of(wrong('0-3, 8'))],
    ['a range as an id', ID, 'CpuSet.parse() reads', () => CpuSet.of(wrong('3-1'))],
    ['a list of nodes as an id', ID, 'NodeSet.parse() reads', () => NodeSet.of(wrong('0-1'))],
    ['-1', ID, 'an integer from 0 to 65535', () => CpuSet.of(-1)],
    ['1e9', ID, 'an integer from 0 to 65535', () => CpuSet.of(1e9)],
    ['a falling range', 'ERR_INVALID_LIST', 'an ascending range of ids', () => CpuSet.parse('3-1')],
    ['a space', 'ERR_INVALID_LIST', '" 8" is neither an id', () => CpuSet.parse('0-3, 8')],
  ];
  it.each(cases)('%s: %s, %s', (_, code, remedy, action) => check(code, remedy, action));
});

describe('a grant with', () => {
  const cases: Case<[Grant]>[] = [
    ['a misspelt kind', OPTION, 'did you mean "main"?', (grant) => grant.placeThreads(wrong({ mian: '0' }))],
    ['other CPUs', OPTION, 'CPUs of the grant, at least one', (grant) => grant.placeThreads({ main: '63' })],
    ['no buffer', OPTION, 'bytes must be from 1', (grant) => grant.buffer(0)],
    ['a buffer of 1Ti', OPTION, 'the longest Buffer', (grant) => grant.buffer('1Ti')],
    [
      'no program',
      'ERR_INVALID_ARG_VALUE',
      "The argument 'file' cannot be empty",
      (grant) => grant.spawn(''),
    ],
    ['no process', 'ERR_UNKNOWN_MEMBER', 'the pid of a process that runs', (grant) => grant.attach(1e8)],
    [
      'itself',
      OPTION,
      'the pid of another process; pin() pins this one',
      (grant) => grant.attach(wrong('self')),
    ],
    ['no part', 'ERR_UNKNOWN_PART', 'acquire({ cpu: 2, parts: { io: 1 } })', (grant) => grant.part('main')],
    [
      'a number for a file',
      'ERR_INVALID_ARG_TYPE',
      'must be of type string or an instance of URL',
      (grant) => grant.worker(wrong(5)),
    ],
    ['priority 100', OPTION, 'from 1 to 99', (grant) => grant.schedule({ policy: 'fifo', priority: 100 })],
  ];
  it('a mistake: each has its code and names the remedy', async () => {
    const manager = await openManager({ stateDir: makeStateDir(), sharedMember: false });
    const grant = await manager.acquire({ cpu: 1 });
    for (const [, code, remedy, action] of cases) await check(code, remedy, () => action(grant));
    await check('ERR_UNKNOWN_TRANSFER', 'handOver() gives another', () => manager.takeOver('nope'));
    await grant.release();
    await check('ERR_GRANT_RELEASED', 'acquire another', () => grant.pin());
    manager.close();
    await check('ERR_MANAGER_CLOSED', 'open another', () => manager.acquire({ cpu: 1 }));
  });

  it('a simulated machine: ERR_SIMULATED_MACHINE, and the option to leave out', async () => {
    const grant = await (await simulate('core:4 pu:1')).acquire({ cpu: 1 });
    await check('ERR_SIMULATED_MACHINE', 'without topology', () => grant.pin());
  });
});

describe('settings', () => {
  const open = async (stateDir: string, options: object) =>
    openManager({ topology: await discover({ synthetic: 'core:4 pu:1' }), stateDir, ...options });

  it.each([
    ['of other CPUs', OPTION, 'it has CPUs 0-3', { reservedSystemCPUs: '99' }],
    [
      'that leave none',
      'ERR_CONFIG_CONFLICT',
      'reserve, isolate or grant fewer',
      { reservedSystemCPUs: '0-3', strictCPUReservation: true },
    ],
  ])('%s: %s, %s', (_, code, remedy, options) => check(code, remedy, () => open(makeStateDir(), options)));

  it('that differ from the recorded ones: ERR_CONFIG_CONFLICT, and the command', async () => {
    const stateDir = makeStateDir();
    (await open(stateDir, {})).close();
    const other = { reservedSystemCPUs: '0' };
    await check('ERR_CONFIG_CONFLICT', '`numalign configure`', () => open(stateDir, other));
  });
});
