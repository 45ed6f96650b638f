// The findings of the check on a node with a real containerd.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { checkNode } from '../../dist/check/check-node.js';
import { Containerd } from './support/containerd.mjs';

/** The findings of the runtime, by check. */
async function check(runtime) {
  const findings = await checkNode({
    nriSocket: join(runtime.folder, 'run/nri/nri.sock'),
    runtimeEndpoint: `unix://${runtime.socketPath}`,
    containerdConfiguration: join(runtime.folder, 'containerd.toml'),
  });
  return Object.fromEntries(findings.map(({ check, ...finding }) => [check, finding]));
}

const withRuntime = async (options, body) => {
  const runtime = await Containerd.start(options);
  try {
    await body(runtime);
  } finally {
    await runtime.close();
  }
};

describe('check', () => {
  it('finds nothing wrong with a runtime that has NRI on, which does not notice', () =>
    withRuntime({}, async (runtime) => {
      const before = runtime.log.length;
      const found = await check(runtime);
      assert.deepEqual(
        ['runtime-socket', 'runtime-version', 'nri-socket', 'cpuset-controller'].map(
          (name) => found[name].status,
        ),
        ['ok', 'ok', 'ok', 'ok'],
      );
      assert.ok(found['runtime-version'].found.includes(runtime.version));
      assert.ok(!/level=(warning|error)/.test(runtime.log.slice(before)), runtime.log.slice(before));
    }));

  it('says that NRI is switched off, and how to switch it on', () =>
    withRuntime({ nri: false }, async (runtime) => {
      const { status, found, advice } = (await check(runtime))['nri-socket'];
      assert.equal(status, 'problem');
      assert.ok(found.includes('containerd.toml switches NRI off'), found);
      assert.ok(advice.startsWith('set `disable = false`'), advice);
    }));

  it('says that containerd 1.6 has no NRI', () =>
    withRuntime({ release: '1.6' }, async (runtime) => {
      const { status, found } = (await check(runtime))['runtime-version'];
      assert.equal(status, 'problem');
      assert.ok(found.includes('has no NRI: the first version with NRI is 1.7'), found);
    }));
});
