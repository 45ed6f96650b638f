// needs: machine
// The version of the kubelet that decides, on the command line.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { newFolder, numalign } from './numalign.js';

describe('numalign configure --kubelet-version, --feature-gates', () => {
  it('changes the version, and the gates that are named', async () => {
    const folder = ['--state-dir', newFolder()];
    const gates = ['--feature-gates', 'PodLevelResourceManagers=true,DRAExtendedResource=false'];
    const configured = await numalign(['configure', ...gates, ...folder]);
    expect(configured.stdout).toMatch(
      /^kubelet: +v1\.37 +v1\.37 \(PodLevelResourceManagers=true,DRAExtendedResource=false\)$/m,
    );
    const file = join(newFolder(), 'pod.json');
    const pod = { kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [{ name: 'a' }] } };
    writeFileSync(file, JSON.stringify(pod));
    const asked = await numalign(['admit', '-f', file, '--kubelet-version', 'v1.32', ...folder]);
    expect([asked.code, asked.stderr]).toEqual([
      1,
      expect.stringContaining('kubeletVersion is v1.37, not v1.32'),
    ]);
    const older = await numalign(['configure', '--kubelet-version', 'v1.32', '--output', 'json', ...folder]);
    expect(JSON.parse(older.stdout).after).toMatchObject({
      kubeletVersion: 'v1.32',
      featureGates: { PodLevelResources: false, PodLevelResourceManagers: false },
    });
  });

  it.each([
    ['configure', '--kubelet-version', 'v1.33'],
    ['configure', '--feature-gates', 'PodLevelResources'],
    ['configure', '--feature-gates', 'PodLevelResources=maybe'],
    ['plan', '-f', 'x', '--feature-gates', 'Another=true'],
  ])('%s %s %s is a wrong command line', async (...args) => {
    expect((await numalign(args)).code).toBe(2);
  });
});
