// needs: nothing
// The placement that a manager uses by default, as it reports it.
import { describe, expect, it } from 'vitest';
import type { ManagerOptions } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { simulate } from '../support/simulated.js';

const MACHINE = 'numa:2(memory=8GiB) core:2 pu:2';

const NO_CPU_OPTIONS = {
  'full-pcpus-only': false,
  'distribute-cpus-across-numa': false,
  'align-by-socket': false,
  'distribute-cpus-across-cores': false,
  'prefer-align-cpus-by-uncorecache': false,
};

describe('the placement of a manager', () => {
  it('has defaults for options that its opener omits', async () => {
    expect((await simulate(MACHINE)).placement).toMatchObject({
      cpuManagerPolicy: 'static',
      cpuManagerPolicyOptions: NO_CPU_OPTIONS,
      memoryManagerPolicy: 'Static',
      policy: 'best-effort',
      topologyManagerPolicyOptions: { 'prefer-closest-numa-nodes': false },
      scope: 'container',
      initContainerLookahead: false,
      strictHugepages: false,
      placement: 'kubelet',
    });
  });

  it.each<ManagerOptions>([
    { cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' }, policy: 'single-numa-node' },
    { cpuManagerPolicy: 'none', memoryManagerPolicy: 'None', scope: 'pod' },
    { topologyManagerPolicyOptions: { 'max-allowable-numa-nodes': '12', 'prefer-closest-numa-nodes': true } },
    { initContainerLookahead: true, strictHugepages: true },
    { placement: 'joint' },
  ])('can open another manager: %o', async (options) => {
    const { placement } = await simulate(MACHINE, options);
    expect((await simulate(MACHINE, placement)).placement).toEqual(placement);
    expect(placement).not.toEqual((await simulate(MACHINE)).placement);
  });

  it('follows a KubeletConfiguration', async () => {
    const kubeletConfiguration = {
      kind: 'KubeletConfiguration',
      cpuManagerPolicy: 'static',
      cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' },
      topologyManagerPolicy: 'restricted',
    };
    expect((await simulate(MACHINE, { kubeletConfiguration })).placement).toMatchObject({
      cpuManagerPolicyOptions: { ...NO_CPU_OPTIONS, 'full-pcpus-only': true },
      memoryManagerPolicy: 'None',
      policy: 'restricted',
    });
  });

  it("refuses a wrong policy of a KubeletConfiguration by the document's name for it", async () => {
    const kubeletConfiguration = { kind: 'KubeletConfiguration', topologyManagerPolicy: 'strict' };
    const { code, message } = await errorOf(() => simulate(MACHINE, { kubeletConfiguration }));
    expect([code, message]).toEqual([
      'ERR_INVALID_OPTION',
      expect.stringMatching(/^topologyManagerPolicy must be 'none' or /),
    ]);
  });
});
