// needs: machine
// The cgroups of single processes.
import { describe, expect, it } from 'vitest';
import { findHierarchy } from '../../lib/cgroups/files/hierarchies.js';
import { cgroupFolder, visibleFolder } from '../../lib/cgroups/limits.js';
import { thrownBy } from '../support/error-of.js';

const MISSING = 2 ** 22 + 1;

const refusal = (pid: number, controller: string) => {
  const { code, details } = thrownBy(() => cgroupFolder(pid, controller))!;
  return [code, details.reason];
};

it('the cgroup of a process is unknown without a hierarchy that has the controller', () => {
  expect(refusal(process.pid, 'no-such-controller')).toEqual(['ERR_CGROUP', 'none']);
});

it.skipIf(!findHierarchy('cpu'))('the cgroup of a process is unknown once it has ended', () => {
  expect(refusal(MISSING, 'cpu')).toEqual(['ERR_CGROUP', 'no-process']);
});

describe('what is mounted of a hierarchy', () => {
  const folderAt = (root: string, path: string) =>
    visibleFolder(
      { version: 1, controller: 'cpu', mount: { point: '/mnt', root, type: 'cgroup', options: ['cpu'] } },
      `3:cpu:${path}\n0::/other\n`,
    );

  it('has the cgroups below its root', () => {
    expect(folderAt('/', '/a/b')).toBe('/mnt/a/b');
    expect(folderAt('/a', '/a/b')).toBe('/mnt/b');
    expect(folderAt('/a', '/ab')).toBeUndefined();
  });

  it('has no cgroup outside of the cgroup namespace, unless it is mounted from there', () => {
    for (const path of ['/..', '/../../k/a']) expect(folderAt('/', path)).toBeUndefined();
    expect(folderAt('/..', '/../b')).toBe('/mnt/b');
  });
});
