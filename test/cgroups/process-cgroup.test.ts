// The cgroups of single processes.
import { describe, expect, it } from 'vitest';
import { findHierarchy } from '../../lib/cgroups/files/hierarchies.js';
import { cgroupFolder } from '../../lib/cgroups/limits.js';
import { thrownBy } from '../support/error-of.js';

const MISSING = 2 ** 22 + 1;
const hierarchy = findHierarchy('cpu');

const refusal = (...of: Parameters<typeof cgroupFolder>) => {
  const { code, details } = thrownBy(() => cgroupFolder(...of))!;
  return [code, details.reason];
};

it('the cgroup of a process is unknown without a hierarchy that has the controller', () => {
  expect(refusal(process.pid, 'no-such-controller')).toEqual(['ERR_CGROUP', 'none']);
});

describe.skipIf(!hierarchy)('the cgroup of a process', () => {
  const at = (path: string) => (hierarchy!.version === 2 ? `0::${path}\n` : `3:cpu:${path}\n0::/other\n`);

  it('is a folder of the hierarchy', () => {
    const { root, point } = hierarchy!.mount;
    const path = `${root === '/' ? '' : root}/a/b`;
    expect(cgroupFolder(process.pid, 'cpu', at(path))).toBe(`${point}/a/b`);
  });

  it('is unknown once the process has ended', () => {
    expect(refusal(MISSING, 'cpu')).toEqual(['ERR_CGROUP', 'no-process']);
  });

  it.each(['/../../k/a', '/..'])('is unknown outside of the cgroup namespace, at %s', (path) => {
    expect(refusal(process.pid, 'cpu', at(path))).toEqual(['ERR_CGROUP', 'missing']);
  });
});
