// Judge: judges a node by its facts: what numalign-node can do there, and what to change. Pure.
import type { Finding } from 'numalign/diagnostics';
import * as cluster from './cluster-checks.js';
import { cpuPolicy, devicePlugins, memoryPolicy, podResources } from './kubelet-checks.js';
import { neighbours, requiredPlugins } from './neighbour-checks.js';
import type { NodeFacts } from './node-facts.js';
import { cpusetController, nriSocket, runtimeSocket, runtimeVersion } from './runtime-checks.js';
import { ok, problem, type Verdict, warning } from './verdict.js';

function stateFolder({ stateFolder: { path, refusal } }: NodeFacts): Verdict {
  if (refusal === null) return ok(`${path} can be used`);
  return problem(
    `${path}: ${refusal}`,
    `run as root; in a pod, mount ${path} by hostPath (DirectoryOrCreate)`,
  );
}

function privilege({ user }: NodeFacts): Verdict {
  if (user === 0) return ok('it runs as root');
  return warning(
    `it runs as user ${user}: cgroups and sockets of the machine are root's`,
    'run it as root; in a pod, with securityContext.privileged',
  );
}

type Check = (facts: NodeFacts) => Verdict;

// In the order in which they are shown.
const CHECKS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  'this process': { privilege, 'state-folder': stateFolder },
  runtime: {
    'runtime-socket': runtimeSocket,
    'runtime-version': runtimeVersion,
    'nri-socket': nriSocket,
    'cpuset-controller': cpusetController,
    neighbours,
    'required-plugins': requiredPlugins,
  },
  kubelet: {
    'cpu-manager': cpuPolicy,
    'memory-manager': memoryPolicy,
    'pod-resources': podResources,
    'device-plugins': devicePlugins,
  },
};
const CLUSTER_CHECKS = {
  'api-server': cluster.apiServer,
  definition: cluster.definition,
  rights: cluster.rights,
  node: cluster.node,
} as const;

export function judge(facts: NodeFacts): Finding[] {
  const findings = Object.entries(CHECKS).flatMap(([group, checks]) =>
    Object.entries(checks).map(([check, verdict]) => ({ group, check, ...verdict(facts) })),
  );
  const { cluster } = facts;
  if (cluster === null) return findings;
  const more = Object.entries(CLUSTER_CHECKS).map(([check, verdict]) => {
    return { group: 'cluster', check, ...verdict(cluster) };
  });
  return [...findings, ...more];
}
