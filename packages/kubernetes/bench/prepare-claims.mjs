// node packages/kubernetes/bench/prepare-claims.mjs [CLAIMS] [TIMES]: how long the DRA driver takes for a
// claim of one CPU and memory, on a simulated machine of 512 CPUs, over the kubelet's socket. The state
// and the CDI files are in the folder for temporary files.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DraDriver } from '@numalign/kubernetes';
import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { allocatedClaim, PlayedPlugin } from '../test/containers/support/played-plugin.mjs';
import { summary } from './summary.mjs';

const [CLAIMS = 500, TIMES = 200] = process.argv.slice(2).map(Number);
const NODES = 8;

const root = mkdtempSync(join(tmpdir(), 'numalign-bench-'));
const topology = await discover({ synthetic: `package:2 numa:${NODES / 2}(memory=64GB) core:32 pu:2` });
const manager = await openManager({
  ...{ topology, stateDir: join(root, 'state'), reservedSystemCPUs: '0', sharedMember: false },
});
const claims = new Map(
  Array.from({ length: CLAIMS }, (_, i) => {
    const name = `claim-${i}`;
    return [name, allocatedClaim(name, `pod-${i}`, { cpu: '1', memory: '256Mi' }, i % NODES)];
  }),
);
const condition = { part: 'nri', isMet: true, isVital: true, text: '' };
const driver = new DraDriver({
  ...{ manager, kubeletFolder: join(root, 'kubelet'), cdiFolder: join(root, 'cdi') },
  containers: { userOf: () => undefined, condition },
  apiServer: { get: async (_, name) => claims.get(name), patch: async (_, name) => claims.get(name) },
  log: () => {},
});
await driver.start();
const plugin = new PlayedPlugin(join(root, 'kubelet/plugins/numalign.io/dra.sock'));

async function measured(all, list, work) {
  for (const claim of list) {
    const [begin, before] = [performance.now(), process.cpuUsage()];
    await work(claim);
    all.times.push(performance.now() - begin);
    const { user, system } = process.cpuUsage(before);
    all.cpu.push((user + system) / 1000);
  }
}

const figures = () => ({ times: [], cpu: [] });

function show(name, { times, cpu }) {
  const [, p50] = /p50 +([\d.]+)/.exec(summary('', cpu));
  console.log(`${summary(name, times)}   CPU p50 ${p50}`);
}

try {
  const list = [...claims.values()];
  const some = list.slice(0, TIMES);
  const [first, repeated, ended, again] = [figures(), figures(), figures(), figures()];
  await measured(first, list, (claim) => plugin.prepare(claim));
  await measured(repeated, some, (claim) => plugin.prepare(claim));
  for (const claim of some) {
    await measured(ended, [claim], (each) => plugin.unprepare(each));
    await measured(again, [claim], (each) => plugin.prepare(each));
  }
  console.log(`${CLAIMS} claims of one CPU and 256 MiB; in milliseconds`);
  show(`prepare, from none to ${CLAIMS} claims`, first);
  show(`prepare, at ${CLAIMS} claims`, again);
  show('prepare again what is prepared', repeated);
  show(`unprepare, at ${CLAIMS} claims`, ended);
} finally {
  plugin.close();
  await driver.close();
  manager.close();
  rmSync(root, { recursive: true });
}
