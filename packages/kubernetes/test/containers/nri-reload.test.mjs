// The command numalign-node, whose configuration changes while containers run.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CpuSet } from 'numalign';
import { ALL, allCpusBut, EXCLUSIVE, until, useNodeFixture } from './support/node-fixture.mjs';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

describe('A changed configuration of numalign-node', () => {
  const fixture = useNodeFixture();

  /** The command with this configuration, synchronized; it ends with the test. */
  async function startCommand(t, fields) {
    const file = join(fixture.stateDir, 'node.yaml');
    const write = (text) => {
      writeFileSync(`${file}.new`, `kind: NodeConfiguration\n${text}`);
      renameSync(`${file}.new`, file);
    };
    write(fields);
    const args = ['--config', file, '--state-dir', join(fixture.stateDir, 'state'), '--no-kubelet'];
    const child = spawn(process.execPath, [MAIN, ...args, '--nri-socket', fixture.runtime.nriSocketPath], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr.on('data', (part) => {
      output += part;
    });
    t.after(async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    });
    const says = (pattern) => until(`it says ${pattern}`, () => pattern.test(output));
    await says(/containers run/);
    return { child, write, says };
  }

  it('applies its rules to the next container', async (t) => {
    const { write, says } = await startCommand(t, '');
    const before = await fixture.pods.runPod('before', { namespace: 'telecom' });
    assert.equal((await before.seen()).cpus, ALL.cpus);
    const [, cpu] = CpuSet.parse(ALL.cpus).toArray();
    write(`rules: [{ name: own, match: { namespaces: tele* }, exclusive: 1, cpus: ${cpu} }]\n`);
    await says(/the configuration has changed; rules: /);
    const after = await fixture.pods.runPod('after', { namespace: 'telecom' });
    assert.equal((await after.seen()).cpus, String(cpu));
    assert.equal((await before.allowed()).cpus, allCpusBut(String(cpu)));
    await assert.rejects(fixture.pods.runPod('second', { namespace: 'telecom' }), / only/);
    const other = await fixture.pods.runPod('other');
    assert.equal((await other.seen()).cpus, allCpusBut(String(cpu)));
  });

  it('is applied at once, or when the containers that stand against it end', async (t) => {
    const { child, write, says } = await startCommand(t, 'policy: restricted\n');
    const exclusive = await fixture.pods.runPod('exclusive', EXCLUSIVE);
    const { cpus } = await exclusive.seen();
    assert.equal(CpuSet.parse(cpus).size, 1);
    const shared = await fixture.pods.runPod('shared');

    // Nothing would be left to share.
    write(`policy: none\nreservedSystemCPUs: ${allCpusBut(cpus)}\nstrictCPUReservation: true\n`);
    await says(/policy: restricted -> none/);
    await says(/the settings of the machine stay as they are until grants end/);
    assert.equal((await exclusive.allowed()).cpus, cpus);
    assert.equal((await shared.allowed()).cpus, allCpusBut(cpus));

    write('policy: unheard-of\n');
    await says(/the configuration stays as it is: .*policy must be/);
    write(`policy: none\nreservedSystemCPUs: ${allCpusBut(cpus)}\nstrictCPUReservation: true\n`);
    child.kill('SIGHUP');
    await says(/the configuration is unchanged/);

    await exclusive.remove();
    await says(/the settings of the machine have changed/);
    await until(
      'the shared container leaves the reserved CPUs',
      async () => (await shared.allowed()).cpus === cpus,
    );
    await assert.rejects(fixture.pods.runPod('refused', EXCLUSIVE), /ERR_|exclusive|CPU/);

    write('policy: none\n');
    await says(/strictCPUReservation: true -> false/);
    await until('the shared container is back', async () => (await shared.allowed()).cpus === ALL.cpus);
    await fixture.pods.runPod('admitted', EXCLUSIVE);
    assert.equal(child.exitCode, null);
  });
});
