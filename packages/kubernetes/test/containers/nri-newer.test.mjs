// What runtimes with NRI 0.10 and newer add: plugins that are required, and memory policies.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { CpuSet } from 'numalign';
import { RELEASE, SELF_BUILT } from './components.mjs';
import { ALL, EXCLUSIVE, guaranteed, until, useNodeFixture } from './support/node-fixture.mjs';

const skip = SELF_BUILT.includes(RELEASE) ? false : 'the runtime has an older NRI';

describe('A runtime with NRI 0.12', { skip }, () => {
  const fixture = useNodeFixture();

  it('binds the memory of a container by a policy, too', async () => {
    const { manager } = await fixture.startNode();
    const pod = await fixture.pods.runPod('bound', { resources: guaranteed(1) });
    const { memory } = manager.pod(pod.containerId).containers[0];
    const { nodes } = memory[0];
    const policies = new Set(
      readFileSync(`/proc/${await pod.pid()}/numa_maps`, 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.split(' ')[1]),
    );
    assert.deepEqual([...policies], [`bind:${nodes}`]);
    const shared = await fixture.pods.runPod('shared');
    assert.match(readFileSync(`/proc/${await shared.pid()}/numa_maps`, 'utf8'), /^\w+ default /);
  });
});

describe('A runtime that requires numalign', { skip }, () => {
  const fixture = useNodeFixture({
    nriConfiguration: `
  [plugins."io.containerd.nri.v1.nri".default_validator]
    enable = true
    required_plugins = ["numalign"]
    tolerate_missing_plugins_annotation = "tolerate-missing-nri-plugins.noderesource.dev"
`,
  });

  it('creates no container without it, but those that tolerate this', async () => {
    await assert.rejects(fixture.pods.runPod('refused'), /numalign/);
    const annotations = { 'tolerate-missing-nri-plugins.noderesource.dev': 'true' };
    const tolerant = await fixture.pods.runPod('tolerant', { annotations });
    assert.equal((await tolerant.seen()).cpus, ALL.cpus);
    const { manager } = await fixture.startNode();
    const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
    assert.equal((await pod.seen()).cpus, String(manager.grants()[0].cpus));
  });

  it('creates none once it has ended', async () => {
    const plugin = await fixture.startProcess();
    await fixture.pods.runPod('before');
    await plugin.kill();
    await assert.rejects(fixture.pods.runPod('after'), /numalign/);
  });
});

describe('A pod that requires numalign', { skip }, () => {
  const fixture = useNodeFixture({
    nriConfiguration: `
  [plugins."io.containerd.nri.v1.nri".default_validator]
    enable = true
`,
  });

  it('has no containers without it', async () => {
    const annotations = { 'required-plugins.noderesource.dev': '["numalign"]' };
    await assert.rejects(fixture.pods.runPod('refused', { annotations }), /numalign/);
    await fixture.pods.runPod('other');
    await fixture.startNode();
    const pod = await fixture.pods.runPod('placed', { ...EXCLUSIVE, annotations });
    await until('it is placed', async () => CpuSet.parse((await pod.allowed()).cpus).size === 1);
  });
});
