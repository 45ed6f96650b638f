// needs: process
// Errors and printed objects for common mistakes.
import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, type Manager, NodeSet, openManager, pin } from '../../lib/index.js';
import { errorOf, thrownBy } from '../support/error-of.js';
import { guaranteed, simulate } from '../support/simulated.js';

async function open(): Promise<Manager> {
  const manager = await openManager({ topology: await discover({ synthetic: 'numa:2 core:32 pu:1' }) });
  onTestFinished(() => manager.close());
  return manager;
}

describe('an error', () => {
  it.each([
    [{ reserved: '0' }, 'reservedSystemCPUs'],
    [{ reservedCPUs: '0' }, 'reservedSystemCPUs'],
    [{ isolated: '0' }, 'isolatedCPUs'],
    [{ managed: '0' }, 'managedCPUs'],
    [{ reservedMem: 1 }, 'reservedMemory'],
  ])('for an unknown option %o names the nearest one', async (options, nearest) => {
    const error = await errorOf(() => openManager(options as never));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { nearest } });
    expect(error.message).toContain(`did you mean "${nearest}"?`);
  });

  it('for an unknown option names none if none is similar', async () => {
    const error = await errorOf(() => openManager({ colour: 'red' } as never));
    expect(error.message).toMatch(/^openManager has no option "colour"\. Valid are: managedCPUs, /);
    expect(error.details).not.toHaveProperty('nearest');
  });

  it('for options that are no object names the options', async () => {
    const grant = await (await open()).acquire({ cpu: 1 });
    expect(thrownBy(() => grant.pin('9' as never))?.message).toMatch(
      /^pin: the options must be an object, not '9'\. Valid are: threads, /,
    );
  });

  it('for an open manager in place of options says what to call', async () => {
    const manager = await open();
    const error = await errorOf(() => pin({ cpu: 1, manager: manager as never }));
    expect(error).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { option: 'manager', value: manager, valid: expect.stringContaining('acquire()') },
    });
    expect(error.message).toMatch(
      /^manager must be options of openManager; an open manager has acquire\(\) of its own, not Manager /,
    );
  });

  it.each([
    ['Manager', () => open(), '_events'],
    ['Topology', () => discover({ synthetic: 'core:2 pu:1' }), 'source'],
    ['CpuSet', async () => CpuSet.of(0), 'words'],
  ])('for a %s in place of options names its class', async (name, make, value) => {
    const given = await make();
    const error = await errorOf(() => openManager(given as never));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { value } });
    expect(error.message).toContain(
      `openManager has no option "${value}", a member of the given ${name}. Valid are: managedCPUs, `,
    );
  });

  // They have no members that could be taken for options.
  it.each([new Map([['managedCPUs', '0']]), new Set(['managedCPUs']), new Date(0), /managedCPUs/])(
    'for %o in place of options names the options',
    async (value) => {
      const error = await errorOf(() => openManager(value as never));
      expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { value } });
      expect(error.message).toMatch(
        /^openManager: the options must be an object, not .*\. Valid are: managed/,
      );
    },
  );

  it('for options that are still a promise names the promise', async () => {
    const manager = Promise.resolve({});
    const error = await errorOf(() => pin({ cpu: 1, manager: manager as never }));
    expect(error.message).toMatch(
      /^openManager: the options must be an object, not Promise \{ \{\} \}\. Valid/,
    );
  });

  it('for an unknown option in an instance of a class of the caller names the option', async () => {
    class Options {
      managedCPUs = '0-1';
      managed?: string;
    }
    const topology = await discover({ synthetic: 'core:2 pu:1' });
    const options = Object.assign(new Options(), { topology });
    const error = await errorOf(() => openManager(Object.assign(options, { managed: '0' }) as never));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { value: 'managed' } });
    delete options.managed;
    (await openManager(options)).close();
  });

  it('for a number of CPUs gives the valid range', async () => {
    const error = await errorOf(async () => (await open()).acquire({ cpu: 1e9 }));
    expect(error.message).toMatch(/^cpu must be a whole number of CPUs from 1 to 65535 .*, not 1000000000$/);
  });

  it('for more CPUs than the machine has says that waiting does not help', async () => {
    const manager = await open();
    const message = async (cpu: number) => (await errorOf(() => manager.acquire({ cpu }))).message;
    expect(await message(65)).toMatch(
      /^65 exclusive CPUs requested: this machine has 64 CPUs, and one of .*; at most 63 can be granted now; cpu: free/,
    );
    expect(await message(64)).not.toMatch(/this machine|ever/);
    const held = await manager.acquire({ cpu: 1 });
    expect(await message(64)).toMatch(/: at most 63 can ever be granted \(of CPUs 0-63\), and one of /);
    await held.release();
    expect((await errorOf(() => manager.acquire({ cpu: 65, policy: 'single-numa-node' }))).message).toContain(
      'cpu: 65 requested; at most 63 can ever be granted; free by NUMA node: ',
    );
    await manager.configure({ reservedSystemCPUs: '0-31' });
    expect(await message(40)).toMatch(/^40 exclusive CPUs requested: 32 are free \(32-63\); cpu: free/);
    const grant = await manager.acquire({ cpu: 2 });
    expect(await message(40)).toMatch(
      /^40 exclusive CPUs requested: at most 32 can ever be granted \(of CPUs 32-63\), and 30 are free /,
    );
    await grant.release();
    await manager.configure({ reservedSystemCPUs: '0-63' });
    expect(await message(1)).toContain('the settings leave no CPU that can be granted');
  });

  it('for more than whole cores can ever give leaves one whole core shared', async () => {
    const manager = await simulate('package:2 core:4 pu:2', {
      cpuManagerPolicyOptions: { 'full-pcpus-only': true },
    });
    const { explanation } = manager.plan(
      { containers: [guaranteed('main', { cpu: 18 })] },
      { policy: 'single-numa-node' },
    );
    expect(explanation!.text).toContain('cpu: 18 requested; at most 14 can ever be granted; ');
  });

  it('for a grant or pod name as holders only others', async () => {
    const manager = await open();
    const other = await manager.acquire({ cpu: 1 });
    const grant = await manager.acquire({ cpu: 2 });
    const pod = { containers: [guaranteed('a', { cpu: 40 }), guaranteed('b', { cpu: 40 })] };
    const uids = async (refused: Promise<unknown>) => {
      const { details } = await errorOf(() => refused);
      return (details.holders as { uid: string }[]).map(({ uid }) => uid);
    };
    expect(await uids(manager.admit(pod))).toEqual([other.uid, grant.uid]);
    expect(await uids(grant.resize({ cpu: 65 }))).toEqual([other.uid]);
  });

  it('for a grant that cannot grow counts all CPUs of the grant, like the request', async () => {
    const grant = await (await open()).acquire({ cpu: 2 });
    const error = await errorOf(() => grant.resize({ cpu: 65 }));
    expect(error.message).toMatch(
      /^65 exclusive CPUs requested: this machine has 64 CPUs, and .*; at most 63 can be granted now/,
    );
  });

  it('for a resource without devices says how devices are registered', async () => {
    const error = await errorOf(async () =>
      (await open()).acquire({ cpu: 1, resources: { 'example.com/gpu': 1 } }),
    );
    expect(error).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringMatching(/example\.com\/gpu is not registered here; .*registerDevices/),
      details: { option: 'resources', value: 'example.com/gpu', valid: ['hugepages'] },
    });
  });

  it('for a grant without an id says so', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 1, name: 'gateway' });
    for (const value of [undefined, 5, grant]) {
      expect(await errorOf(() => manager.release(value as never))).toMatchObject({
        code: 'ERR_INVALID_ARGUMENT',
        message: expect.stringMatching(/^the uid of a grant must be a string, not /),
        details: { value, valid: [grant.uid] },
      });
    }
    const byName = await errorOf(() => manager.release('gateway'));
    expect([byName.code, byName.message]).toEqual([
      'ERR_UNKNOWN_GRANT',
      `there is no grant "gateway" in memory: that is the name of ${grant.uid}; give the uid`,
    ]);
  });

  it.each([CpuSet, NodeSet])('for new $name() says how a set is made', (kind) => {
    const error = thrownBy(() => new kind([1] as never));
    expect(error?.code).toBe('ERR_INVALID_ARGUMENT');
    expect(error?.message).toContain(`not [ 1 ]; make a set by ${kind.name}.of(0, 1)`);
  });
});

describe('the printed form', () => {
  it('of a grant says that it was released, in any way', async () => {
    const manager = await open();
    for (const release of [
      (id: string) => manager.release(id),
      (id: string) => manager.grant(id).release(),
    ]) {
      const grant = await manager.acquire({ cpu: 1 });
      expect(inspect(grant)).toMatch(/^Grant \{/);
      await release(grant.uid);
      expect(inspect(grant)).toMatch(/^Grant \(released\) \{/);
    }
  });

  it('of a manager as JSON is its identity', async () => {
    const manager = await open();
    expect(JSON.parse(JSON.stringify(manager))).toEqual({
      ...{ id: manager.id, scope: 'memory', stateDir: manager.stateDir, cpus: '0-63' },
    });
  });
});
