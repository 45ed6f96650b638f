import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { checkHierarchy } from '../../lib/cgroups/cpuset-files.js';

it.each(['cpuset.cpus', 'cpuset.cpus.effective'])('A folder with %s is a hierarchy with cpusets', (file) => {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-cgroups-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const error = { code: 'ERR_CGROUP', message: `${folder} is not a cgroup hierarchy with cpusets` };
  expect(() => checkHierarchy(folder)).toThrow(expect.objectContaining(error));
  writeFileSync(join(folder, file), '0-1');
  expect(checkHierarchy(folder)).toBe(folder);
});
