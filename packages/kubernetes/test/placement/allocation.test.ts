import fc from 'fast-check';
import { CpuSet } from 'numalign';
import { describe, expect, it } from 'vitest';
import {
  allocationEnvironment,
  allocationIn,
  allocationName,
  grantsOf,
  isAllocation,
  isClaimed,
  parseAllocationName,
} from '../../lib/placement/allocation.js';

const resources = fc.constantFrom('numalign.io/cpu', 'numalign.io/core', 'a.b/c.d_e');

describe('The name of an allocation’s grant', () => {
  it('has its resource, and the allocations that it stands for', () => {
    fc.assert(
      fc.property(resources, fc.array(fc.uuid(), { minLength: 1, maxLength: 9 }), (resource, uids) => {
        const name = allocationName({ resource, uids });
        expect(parseAllocationName(name)).toEqual({ resource, uids });
        expect(isAllocation({ name }, resource)).toBe(true);
        expect(isAllocation({ name }, `${resource}s`)).toBe(false);
      }),
    );
  });

  it('keeps the newest if there are very many', () => {
    const uids = Array.from({ length: 100 }, (_, i) => `u${i}`);
    expect(parseAllocationName(allocationName({ resource: 'a/b', uids }))!.uids).toEqual(uids.slice(36));
  });

  it('belongs to no other grant', () => {
    for (const name of [
      '',
      'job',
      'device-plugin:',
      'device-plugin:a/b',
      'device-plugin:a/b:',
      'device-plugin::u',
      'device-plugin:a/b:u:v',
    ]) {
      expect(parseAllocationName(name)).toBeUndefined();
    }
  });
});

describe('A container’s environment', () => {
  it('says which allocation it has', () => {
    const given = { uid: 'u', cpus: CpuSet.parse('2-3,8') };
    const environment = Object.entries(allocationEnvironment(given)).map((pair) => pair.join('='));
    expect(environment).toEqual(['NUMALIGN_CPUS=2-3,8', 'NUMALIGN_ALLOCATION=u']);
    const found = allocationIn(['PATH=/bin', ...environment, ...environment])!;
    expect({ ...found, cpus: `${found.cpus}` }).toEqual({ uid: 'u', cpus: '2-3,8' });
  });

  it('has none without the variable of the allocation', () => {
    expect(allocationIn(['PATH=/bin', 'NUMALIGN_CPUS=1', 'MY_NUMALIGN_ALLOCATION=u'])).toBeUndefined();
  });

  it('is refused if it contradicts itself', () => {
    for (const environment of [
      ['NUMALIGN_ALLOCATION=u', 'NUMALIGN_ALLOCATION=v', 'NUMALIGN_CPUS=1'],
      ['NUMALIGN_ALLOCATION=u', 'NUMALIGN_CPUS=1', 'NUMALIGN_CPUS=2'],
      ['NUMALIGN_ALLOCATION=u'],
      ['NUMALIGN_ALLOCATION=u', 'NUMALIGN_CPUS='],
      ['NUMALIGN_ALLOCATION=u', 'NUMALIGN_CPUS=all'],
    ]) {
      expect(() => allocationIn(environment)).toThrow(expect.objectContaining({ code: 'ERR_ALLOCATION' }));
    }
  });
});

describe('The grants of an allocation', () => {
  const grant = (...uids: string[]) => ({ name: allocationName({ resource: 'a/b', uids }), uids });

  it('are all that stand for it', () => {
    const grants = [grant('u'), grant('u', 'v'), grant('v'), { name: 'u', uids: [] }];
    expect(grantsOf('u', grants)).toEqual(grants.slice(0, 2));
    expect(grantsOf('w', grants)).toEqual([]);
  });

  it('are claimed once a cgroup owns them', () => {
    expect(isClaimed({ owner: { kind: 'cgroup' } })).toBe(true);
    expect(isClaimed({ owner: { kind: 'persistent' } })).toBe(false);
  });
});
