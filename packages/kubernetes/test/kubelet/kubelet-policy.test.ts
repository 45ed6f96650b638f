import { CpuSet } from 'numalign';
import { CPU_MANAGER_STATE, formatCpuManagerState } from 'numalign/kubelet';
import { expect, it, onTestFinished } from 'vitest';
import { refuseStaticKubelet, staticPolicies } from '../../lib/kubelet/kubelet-policy.js';
import { KubeletFolder } from './kubelet-folder.js';

function folderOf(policyName: string) {
  const kubelet = new KubeletFolder();
  onTestFinished(() => kubelet.remove());
  const text = formatCpuManagerState({ policyName, defaultCpuSet: CpuSet.parse('0'), entries: new Map() });
  kubelet.write(CPU_MANAGER_STATE, text);
  return [kubelet.path, kubelet.deviceFolder] as const;
}

it('A kubelet with the policy static allocates CPUs itself, and is refused', async () => {
  const folders = folderOf('static');
  expect(await staticPolicies(...folders)).toEqual(['cpuManagerPolicy: static']);
  const error = { code: 'ERR_KUBELET_STATIC', details: { value: ['cpuManagerPolicy: static'] } };
  await expect(refuseStaticKubelet(...folders)).rejects.toMatchObject(error);
});

it('A kubelet with the policy none allocates nothing, like a missing one', async () => {
  for (const folders of [folderOf('none'), ['/none', '/none/device-plugins'] as const]) {
    expect(await staticPolicies(...folders)).toEqual([]);
    await expect(refuseStaticKubelet(...folders)).resolves.toBeUndefined();
  }
});
