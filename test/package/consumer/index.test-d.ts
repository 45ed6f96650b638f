// What TypeScript says to who uses the package; tsd compiles it in a project where the package is
// installed. Nothing of it runs.
import type { ChildProcess } from 'node:child_process';
import { collectMetrics, type MetricsCollection } from '@numalign/metrics';
import { type MeterRegistration, registerMetrics } from '@numalign/metrics/opentelemetry';
import {
  AdmissionError,
  type CpuSet,
  type EmptyGrant,
  type EmptyManager,
  type ErrorCode,
  type Grant,
  type GrantInfo,
  type GrantPinResult,
  type Manager,
  type ManagerOptions,
  type ManagerView,
  NumalignError,
  openManager,
  type PinResult,
  type Plan,
  type Pod,
  pin,
  pinThread,
  supported,
  threadCounts,
} from 'numalign';
import type { AdmissionReason } from 'numalign/diagnostics';
import { discover, type HintProvider, type Topology, type TopologyHint } from 'numalign/topology';
import { expectAssignable, expectError, expectNotAssignable, expectType } from 'tsd';

const manager = await openManager({
  policy: 'single-numa-node',
  cpuManagerPolicyOptions: { 'full-pcpus-only': true },
});
expectType<Manager>(manager);
expectError(await openManager({ policy: 'any-numa-node' }));
expectError(await openManager({ topologyManagerPolicy: 'restricted' }));

const grant = await manager.acquire({ cpu: 2, memory: '1Gi', name: 'gateway' });
expectType<Grant>(grant);
expectType<CpuSet>(grant.cpus);
expectError(manager.acquire({ cpu: true }));
expectError(manager.acquire({ cpus: 2 }));
expectType<Promise<PinResult>>(grant.release());
expectType<Promise<Grant>>(pin({ cpu: 1 }));
expectType<Promise<Grant>>(
  pin({
    cpu: 2,
    name: 'gateway',
    manager: { stateDir: '/run/gateway' },
    threads: { main: '0' },
    replace: true,
  }),
);
expectType<PinResult>(pin('0-1'));
expectType<PinResult>(pin(grant.cpus, { threads: 'current' }));
expectError(pin({ cpus: 1 }));
expectError(pin({ name: 'gateway' }));
expectError(pin({ cpu: 1 }, { threads: 'current' }));
expectError(pin({ cpu: 1, manager: { readOnly: true } }));
expectType<ChildProcess>(grant.spawn('./encoder', ['--fast'], { threadCounts: 'auto' }));
expectType<ChildProcess>(grant.fork('./worker.mjs', ['one'], { silent: true, threadCounts: 'auto' }));
expectType<ChildProcess>(grant.fork(new URL('file:///worker.mjs'), { execArgv: [] }));
expectError(grant.fork('./worker.mjs', [], { threadCounts: 4 }));
expectType<Record<string, string>>(threadCounts(2, process.env));
expectType<number[]>([...grant.cpus]);
expectType<number>(await manager.use({ cpu: 1 }, async ({ cpus }) => cpus.size));

// What the program can do without is a grant or an empty one, used alike.
const optional = await manager.acquire({ cpu: 1, optional: true });
expectType<Grant | EmptyGrant>(optional);
expectType<GrantPinResult>(optional.pin({ threads: 'current' }));
expectNotAssignable<Grant>(optional);
if (optional.isEmpty) expectType<NumalignError>(optional.reason);
else expectType<Grant>(optional);
expectType<Promise<Grant | EmptyGrant>>(pin({ cpu: 1, optional: true }));
expectType<Promise<Grant>>(pin({ cpu: 1 }));
expectType<Manager | EmptyManager>(await openManager({ optional: true }));
const anyManager = await openManager({ optional: true });
expectType<Grant | EmptyGrant>(await anyManager.acquire({ cpu: 1, optional: true }));
expectType<number>(await anyManager.use({ cpu: 1, optional: true }, ({ cpus }) => cpus.size));
expectError(manager.acquire({ cpu: 1, optional: 'yes' }));
if (!supported.isSupported) expectType<NumalignError>(supported.reason);

const topology = await discover({ synthetic: 'numa:2 core:4 pu:2' });
expectType<Topology>(topology);
expectError(await discover({ xml: 1 }));
expectAssignable<ManagerOptions>({ topology });
const view = await openManager({ topology, readOnly: true });
expectType<ManagerView>(view);
expectError(view.acquire({ cpu: 1 }));

const limits = { cpu: '2', memory: '1Gi', 'nvidia.com/gpu': 1 };
const pod = await manager.admit(
  { name: 'trainer', containers: [{ name: 'main', limits }] },
  { owner: 'persistent' },
);
expectType<Pod>(pod);
expectType<Promise<void>>(pod.setOwner({ cgroup: '/sys/fs/cgroup/job' }));
expectError(pod.setOwner('process'));
expectError(manager.admit({ name: 'trainer' }));
expectType<Promise<Pod>>(
  manager.adopt({ containers: [{ name: 'main', cpus: '4-7' }] }, { owner: 'persistent' }),
);
expectError(manager.adopt({ containers: [{ name: 'main', cpus: 4 }] }));
expectError(manager.adopt({ containers: [] }, { owner: 'process' }));
expectAssignable<Plan>(manager.plan({ name: 'trainer', containers: [{ name: 'main', limits }] }));
expectType<TopologyHint>(manager.getAffinity(pod.uid, 'main'));
expectType<GrantInfo[]>(manager.grants());

// A resource of one's own needs its hints and what is to be done with the merged one.
expectNotAssignable<HintProvider>({ name: 'example.com/fpga' });

try {
  pinThread('0-3');
} catch (error) {
  if (error instanceof AdmissionError) expectType<AdmissionReason>(error.rejection.reason);
  if (error instanceof NumalignError) {
    expectType<ErrorCode>(error.code);
    expectNotAssignable<typeof error.code>('ERR_NO_SUCH_CODE');
    expectType<unknown>(error.details.valid);
    if (error.code === 'ERR_LOCK_TIMEOUT') expectType<number | null>(error.details.pid);
    if (error.code === 'ERR_INSUFFICIENT_CPUS') {
      expectType<AdmissionReason | undefined>(error.details.explanation?.reason);
      expectType<string | undefined>(error.details.holders?.[0]?.uid);
    }
  }
}

expectType<MetricsCollection>(collectMetrics(manager, { prefix: 'node_' }));
expectError(collectMetrics({}));
expectType<MeterRegistration>(registerMetrics(manager, { audit: true, grants: { max: 10 } }));
expectError(registerMetrics(manager, { meter: {} }));
