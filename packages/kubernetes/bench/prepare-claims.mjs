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
  apiServer: { get: async (_, name) => claims.get(name) },
  log: () => {},
});
await driver.start();
const plugin = new PlayedPlugin(join(root, 'kubelet/plugins/numalign.io/dra.sock'));

async function measured(list, work) {
  const all = [];
  for (const claim of list) {
    const begin = performance.now();
    await work(claim);
    all.push(performance.now() - begin);
  }
  return all;
}

try {
  const list = [...claims.values()];
  const some = list.slice(0, TIMES);
  const first = await measured(list, (claim) => plugin.prepare(claim));
  const repeated = await measured(some, (claim) => plugin.prepare(claim));
  const [ended, again] = [[], []];
  for (const claim of some) {
    ended.push(...(await measured([claim], (each) => plugin.unprepare(each))));
    again.push(...(await measured([claim], (each) => plugin.prepare(each))));
  }
  console.log(`${CLAIMS} claims of one CPU and 256 MiB; in milliseconds`);
  console.log(summary(`prepare, from none to ${CLAIMS} claims`, first));
  console.log(summary(`prepare, at ${CLAIMS} claims`, again));
  console.log(summary('prepare again what is prepared', repeated));
  console.log(summary(`unprepare, at ${CLAIMS} claims`, ended));
} finally {
  plugin.close();
  await driver.close();
  manager.close();
  rmSync(root, { recursive: true });
}
