// needs: nothing
// A grant's share of a cache, on a fake resctrl.
import { describe, expect, it, vi } from 'vitest';
import { discover } from '../../../lib/entries/topology.js';
import { cache } from '../../../lib/quiet/parts/cache.js';
import { writeSchemata } from '../../../lib/quiet/resctrl/group.js';
import { CacheRun, cacheDemand } from './cache-run.js';
import { type FakeOptions, FakeResctrl } from './fake-resctrl.js';

const topology = await discover({ synthetic: 'package:2 [numa(memory=8GiB)] l3:1 core:4 pu:1' });
const CACHES = [
  [0, 1, 2, 3],
  [4, 5, 6, 7],
];

type Grants = Record<string, [cpus: string, share: { ways: number } | { percent: number }]>;

function runOf(options: FakeOptions, grants: Grants): CacheRun {
  const run = new CacheRun(new FakeResctrl({ caches: CACHES, ...options }), topology);
  for (const [uid, [cpus, share]] of Object.entries(grants))
    run.demands.set(uid, cacheDemand(uid, cpus, share));
  return run;
}

function settled(options: FakeOptions, grants: Grants): CacheRun {
  const run = runOf(options, grants);
  run.settle();
  return run;
}

describe('a grant with ways of a cache', () => {
  it('has them to itself, and the default group has the rest', () => {
    const { files, obstacles, disturbed } = settled({}, { a: ['0-1', { ways: 4 }] });
    expect(files.maskOf('numalign-a', 0)).toBe(0xf0000);
    expect(files.maskOf('', 0)).toBe(0x0ffff);
    expect([...obstacles, ...disturbed]).toEqual([]);
  });

  it('has its CPUs in the group', () => {
    expect(String(settled({}, { a: ['0-1', { ways: 4 }] }).files.groups.get('numalign-a')!.cpus)).toBe('0-1');
  });

  it('takes nothing of a cache that its CPUs do not use', () => {
    const { files } = settled({}, { a: ['0-1', { ways: 4 }] });
    expect(files.maskOf('', 1)).toBe(0xfffff);
    expect(files.maskOf('numalign-a', 1)).toBe(0xfffff);
  });

  it('shares no way of another cache with the grant that has it', () => {
    const { files } = settled({}, { a: ['0-1', { ways: 4 }], b: ['4', { ways: 2 }] });
    expect(files.maskOf('numalign-a', 1)).toBe(0x3ffff);
    expect(files.maskOf('numalign-b', 1)).toBe(0xc0000);
  });

  it('keeps what it shares of another cache until a grant has ways there, and then what that leaves', () => {
    const run = settled({}, { a: ['0-1', { ways: 4 }] });
    expect(run.files.maskOf('numalign-a', 1)).toBe(0xfffff);
    run.demands.set('b', cacheDemand('b', '4', { ways: 2 }));
    run.settle();
    expect(run.files.maskOf('numalign-a', 1)).toBe(0x3ffff);
    run.demands.delete('b');
    run.settle();
    expect(run.files.maskOf('numalign-a', 1)).toBe(0x3ffff);
  });

  it('takes no class of service if all its CPUs are offline', () => {
    const { files, obstacles } = settled({ closids: 2 }, { a: ['8', { ways: 4 }], b: ['0', { ways: 4 }] });
    expect([...files.groups.keys()]).toEqual(['', 'numalign-b']);
    expect(obstacles).toEqual([]);
  });

  it('is disturbed once another program has removed its group', () => {
    const run = settled({}, { a: ['0-1', { ways: 4 }], b: ['4', { ways: 4 }] });
    run.files.removeFolder('/sys/fs/resctrl/numalign-a');
    expect(run.disturbed).toEqual(['a']);
  });

  it('has ways of both caches if it has CPUs of both', () => {
    const { files } = settled({}, { a: ['3-4', { ways: 4 }] });
    expect([files.maskOf('', 0), files.maskOf('', 1)]).toEqual([0xffff, 0xffff]);
  });

  it('has its percentage rounded up to whole ways', () => {
    expect(settled({ ways: 11 }, { a: ['0', { percent: 25 }] }).files.maskOf('numalign-a', 0)).toBe(0x700);
    expect(settled({ ways: 20 }, { a: ['0', { percent: 15 }] }).files.maskOf('numalign-a', 0)).toBe(0xe0000);
  });

  it('has at least the minimum of a mask', () => {
    expect(settled({ minBits: 2 }, { a: ['0', { ways: 1 }] }).files.maskOf('numalign-a', 0)).toBe(0xc0000);
  });

  it('has the same ways for code and for data', () => {
    const { files } = settled({ codeAndData: true }, { a: ['0', { ways: 4 }] });
    for (const resource of ['L3CODE', 'L3DATA']) {
      expect(files.maskOf('numalign-a', 0, resource)).toBe(0xf0000);
      expect(files.maskOf('', 0, resource)).toBe(0x0ffff);
    }
  });

  it('keeps them when another grant comes and goes', () => {
    const run = settled({}, { a: ['0', { ways: 4 }] });
    run.demands.set('b', cacheDemand('b', '1', { ways: 6 }));
    run.settle();
    expect(run.files.maskOf('numalign-b', 0)).toBe(0x0fc00);
    run.demands.delete('a');
    run.settle();
    expect(run.files.maskOf('numalign-b', 0)).toBe(0x0fc00);
    expect(run.files.maskOf('', 0)).toBe(0x003ff);
  });

  it('is written once', () => {
    const run = settled({}, { a: ['0', { ways: 4 }], b: ['4-5', { percent: 10 }] });
    const { writes } = run.files;
    run.settle();
    expect(run.files.writes).toBe(writes);
  });

  it('takes no way of a group of others', () => {
    const run = runOf({}, { a: ['0', { ways: 4 }] });
    run.files.makeFolder('/sys/fs/resctrl/db');
    run.files.write('/sys/fs/resctrl/db/schemata', 'L3:0=ff000;1=ff\n');
    run.files.write('/sys/fs/resctrl/schemata', 'L3:0=fff\n');
    run.files.write('/sys/fs/resctrl/db/mode', 'shareable\n');
    run.settle();
    expect(run.files.maskOf('numalign-a', 0)).toBe(0xf00);
    expect(run.files.maskOf('db', 0)).toBe(0xff000);
  });

  it('names its neighbours if another program widens the default group', () => {
    const run = settled({}, { a: ['0-1', { ways: 4 }], b: ['4', { ways: 4 }] });
    run.files.write('/sys/fs/resctrl/schemata', 'L3:0=fffff\n');
    expect(run.disturbed).toEqual(['a']);
  });

  it('names CPUs that another program takes out of its group', () => {
    const run = settled({}, { a: ['0-1', { ways: 4 }] });
    run.files.write('/sys/fs/resctrl/numalign-a/cpus_list', '0');
    const group = run.settings.find(({ path }) => path.endsWith('numalign-a'))!;
    expect(String(group.disturbs(group.read() as string, run.demand))).toBe('1');
  });
});

describe('a grant that cannot have ways', () => {
  it('names CPUs of a cache that resctrl does not show, which are not in its group', () => {
    const run = runOf({}, { a: ['0-1', { ways: 4 }] });
    const { files } = run;
    const read = vi.spyOn(files, 'read').mockImplementation((path) => {
      const isOther = path === '/sys/devices/system/cpu/cpu1/cache/index3/id';
      return isOther ? '7' : FakeResctrl.prototype.read.call(files, path);
    });
    run.settle();
    expect(String(files.groups.get('numalign-a')!.cpus)).toBe('0');
    expect(run.obstacles.join()).toMatch(/no L3 cache of the CPUs 1/);
    read.mockRestore();
  });

  it('says that resctrl is not mounted', () => {
    const run = settled({ isMounted: false }, { a: ['0', { ways: 4 }] });
    expect(run.obstacles.join()).toMatch(/not mounted: mount -t resctrl resctrl \/sys\/fs\/resctrl/);
  });

  it('says that the caches cannot be allotted', () => {
    expect(settled({ hasCat: false }, { a: ['0', { ways: 4 }] }).obstacles.join()).toMatch(/no CAT/);
  });

  it('says which grants and groups have them, and how many it could have', () => {
    const run = runOf({}, { a: ['0', { ways: 10 }], b: ['1', { percent: 50 }], c: ['4', { ways: 1 }] });
    run.files.makeFolder('/sys/fs/resctrl/db');
    run.files.write('/sys/fs/resctrl/db/schemata', 'L3:0=3;1=1\n');
    run.settle();
    expect(run.obstacles).toEqual([
      'L3 cache 0 has the ways 0-19, grant a has 10-19, the group db has 0-1: no 10 neighbouring ways are left for grant b and some for the default group; ask for at most 8',
    ]);
    expect(run.disturbed).toEqual(['b']);
    expect(run.files.groups.has('numalign-b')).toBe(false);
  });

  it('takes no ways of one cache if another has too few', () => {
    const run = settled({}, { a: ['0', { ways: 15 }], b: ['1,4', { ways: 8 }], c: ['5', { ways: 18 }] });
    expect(run.files.maskOf('numalign-c', 1)).toBe(0xffffc);
    expect(run.disturbed).toEqual(['b']);
  });

  it('says that all classes of service are in use, and by which groups', () => {
    const run = runOf({ closids: 2 }, { a: ['0', { ways: 4 }] });
    run.files.makeFolder('/sys/fs/resctrl/db');
    run.files.write('/sys/fs/resctrl/db/schemata', 'L3:0=3;1=3\n');
    run.settle();
    expect(run.obstacles).toEqual([
      'resctrl has 2 classes of service, and all are in use (the default group, db): none is left for grant a; remove an unused group (rmdir)',
    ]);
    expect(run.files.maskOf('', 0)).toBe(0xfffff);
    expect(run.disturbed).toEqual(['a']);
  });

  it('quotes the kernel if a class of service is taken meanwhile', () => {
    const run = runOf({ closids: 2 }, { a: ['0', { ways: 4 }] });
    const group = run.settings.find(({ path }) => path.endsWith('numalign-a'))!;
    run.files.makeFolder('/sys/fs/resctrl/db');
    let error: NodeJS.ErrnoException | undefined;
    try {
      group.write('L3:0=f\ncpus=0');
    } catch (thrown) {
      error = thrown as NodeJS.ErrnoException;
    }
    expect(error).toMatchObject({ code: 'ENOSPC', message: expect.stringMatching(/Out of CLOSIDs/) });
  });

  it('names CPUs whose cache is unknown', () => {
    const run = settled({ caches: [[0, 1, 2, 3]] }, { a: ['3-4', { ways: 4 }] });
    expect(run.obstacles.join()).toMatch(/no L3 cache of the CPUs 4/);
    expect(String(run.files.groups.get('numalign-a')!.cpus)).toBe('3');
  });

  it('has no group if all its CPUs are of unknown caches', () => {
    const run = settled({ caches: [[0, 1, 2, 3]] }, { a: ['4', { ways: 4 }] });
    expect(run.obstacles.join()).toMatch(/no L3 cache of the CPUs 4/);
    expect([...run.record.keys()]).toEqual([]);
    expect(run.files.writes).toBe(0);
  });

  it('says to free ways if others have all but those of the default group', () => {
    const run = runOf({ caches: [[0, 1, 2, 3]], ways: 4 }, { a: ['0', { ways: 1 }] });
    run.files.makeFolder('/sys/fs/resctrl/db');
    run.files.write('/sys/fs/resctrl/db/schemata', 'L3:0=e\n');
    run.files.write('/sys/fs/resctrl/schemata', 'L3:0=1\n');
    expect(run.obstacles).toEqual([
      'L3 cache 0 has the ways 0-3, the group db has 1-3: no 1 neighbouring ways are left for grant a and some for the default group; release a grant that has some, or remove a group (rmdir)',
    ]);
  });

  it('leaves no group behind if a mask is refused, and quotes why', () => {
    const run = runOf({}, { a: ['0', { ways: 4 }] });
    const group = run.settings.find(({ path }) => path.endsWith('numalign-a'))!;
    expect(() => group.write('L3:0=5\ncpus=0')).toThrow(/EINVAL, The mask 5 has non-consecutive 1-bits/);
    expect(run.files.groups.has('numalign-a')).toBe(false);
  });
});

it('a refusal for which resctrl has no reason is in the kernel’s words', () => {
  const write = () => writeSchemata(new FakeResctrl(), '/sys/fs/resctrl/none', 'L3:0=1');
  expect(write).toThrow(
    /^resctrl refuses "L3:0=1" in \/sys\/fs\/resctrl\/none\/schemata: ENOENT: the kernel refuses$/,
  );
});

describe('a group on record', () => {
  it.each(['/tmp/group', '/sys/fs/resctrl/numalign-a/../../../../tmp/group', '/sys/fs/resctrl/others'])(
    'is no setting if it is not the group of a grant: %s',
    (path) => {
      const run = runOf({}, {});
      const exists = vi.spyOn(run.files, 'exists').mockReturnValue(true);
      const settings = [...cache.settings(run.files, run.demand, [path])];
      expect(settings.map((setting) => setting.path)).not.toContain(path);
      exists.mockRestore();
    },
  );
});
