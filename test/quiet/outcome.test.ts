// What grants tell of their quiet, on this machine. Packets alone are asked for: nothing steers any.
import { rmSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { kernelFiles } from '../../lib/quiet/kernel/kernel-files.js';
import { kernelWork, readKernelSettings, workText } from '../../lib/quiet/kernel-work.js';
import * as numalign from '../support/package.js';
import { makeStateDir } from '../support/state-dir.js';

async function manager(stateDir = makeStateDir()) {
  const manager = await numalign.openManager({ stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

it('a grant tells what the kernel does on its CPUs besides, for these CPUs', async () => {
  const grant = await (await manager()).acquire({ cpu: 1, quiet: { packets: true } });
  const work = kernelWork(readKernelSettings(kernelFiles()), grant.cpus);
  expect(Object.keys(grant.quiet!.parts)).toEqual(['packets']);
  expect(grant.quiet!.unchanged).toEqual(work.map(workText));
  await grant.release();
});

it('a grant without quiet, or released, tells nothing', async () => {
  const opened = await manager();
  const plain = await opened.acquire({ cpu: 1 });
  expect(plain.quiet).toBeNull();
  await plain.release();
  const quiet = await opened.acquire({ cpu: 1, quiet: { packets: true } });
  await quiet.release();
  expect(quiet.quiet).toBeNull();
});

it('a grant whose record has been removed tells nothing, and does not throw', async () => {
  const stateDir = makeStateDir();
  const grant = await (await manager(stateDir)).acquire({ cpu: 1, quiet: { packets: true } });
  expect(grant.quiet).not.toBeNull();
  rmSync(stateDir, { recursive: true });
  expect(grant.quiet).toBeNull();
});

it('a pod tells the same as the grant that it is', async () => {
  const limits = { cpu: 1, memory: 1 };
  const opened = await manager();
  const pod = await opened.admit({ containers: [{ name: 'main', limits }] }, { quiet: { packets: true } });
  expect(pod.quiet).toEqual(opened.grant(pod.uid).quiet);
  expect(pod.toJSON().quiet!.parts).toHaveProperty('packets');
  await pod.release();
});

it('a simulated machine has no kernel that could be quiet', async () => {
  const topology = await numalign.discover({ synthetic: 'core:2 pu:1' });
  const grant = await (await numalign.openManager({ topology })).acquire({ cpu: 1, quiet: { idle: true } });
  const reasons = ['the machine is simulated'];
  expect(grant.quiet).toEqual({ parts: { idle: { reached: 'no', reasons } }, unchanged: [] });
});
