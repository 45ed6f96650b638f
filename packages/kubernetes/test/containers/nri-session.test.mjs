// What a runtime says about itself, and by which calls it reports events.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NriPlugin } from '../../dist/nri/plugin.js';
import { PluginService } from '../../dist/nri/plugin-service.js';
import { RELEASE } from './components.mjs';
import { useNodeFixture } from './support/node-fixture.mjs';

/** From the release of containerd whose NRI has them: 0.6, 0.8. */
const TIMEOUTS = {
  1.7: { registrationTimeout: undefined, requestTimeout: undefined },
  2.1: { registrationTimeout: 5000, requestTimeout: 2000 },
};

describe('A session with the runtime', () => {
  const fixture = useNodeFixture();

  it('begins with its name, version and timeouts; events come by StateChange', async (t) => {
    const calls = new Set();
    const { get } = Object.getOwnPropertyDescriptor(PluginService.prototype, 'methods');
    t.mock.getter(PluginService.prototype, 'methods', function methods() {
      const counted = ([name, handle]) => [name, (...args) => handle(...args, calls.add(name))];
      return Object.fromEntries(Object.entries(get.call(this)).map(counted));
    });
    let runtime;
    const handlers = {
      configure: (found) => {
        runtime = found;
      },
      synchronize: async () => [],
      createContainer: async () => ({}),
      updateContainer: async () => [],
      stopContainer: async () => [],
      runPodSandbox() {},
      startContainer() {},
    };
    const plugin = new NriPlugin({
      socketPath: fixture.runtime.nriSocketPath,
      ...{ name: 'seen', index: '90', handlers, log() {} },
    });
    await plugin.start();
    try {
      await (await fixture.pods.runPod('seen')).stop();
    } finally {
      await plugin.close();
    }
    const { name, version, nriVersion, registrationTimeout, requestTimeout } = runtime;
    assert.equal(name, 'containerd');
    assert.ok(version.startsWith(`${RELEASE}.`), version);
    assert.equal(nriVersion, undefined);
    assert.deepEqual({ registrationTimeout, requestTimeout }, TIMEOUTS[RELEASE]);
    assert.deepEqual(
      [...calls].sort(),
      ['Configure', 'CreateContainer', 'StateChange', 'StopContainer', 'Synchronize'].sort(),
    );
  });
});
