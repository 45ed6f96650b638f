// Checks of what publishing to the API server needs. Pure.
import { UNSEEN_WITHOUT } from './cluster-facts.js';
import type { ClusterFacts } from './node-facts.js';
import { ok, problem, unknown, type Verdict, warning } from './verdict.js';

const ADVICE: Readonly<Record<string, string>> = {
  ERR_NOT_IN_CLUSTER: 'run it in a pod with a service account, as the chart makes one',
  ERR_API_UNREACHABLE: 'see that the address is right and nothing keeps this node from it',
  ERR_API_TIMEOUT: 'see that the address is right and nothing keeps this node from it',
  ERR_API_TLS: "the CA's file must be the one of this cluster",
  ERR_API_CREDENTIALS: 'mount the token of a service account: automountServiceAccountToken: true',
  ERR_API_UNAUTHORIZED: 'the token belongs to no service account of this cluster, or has expired',
};

export function apiServer({ failure }: ClusterFacts): Verdict {
  if (!failure) return ok('the API server answers');
  const { code, message } = failure;
  return problem(`${code}: ${message}`, ADVICE[code] ?? 'see the log of the API server');
}

export function definition({ failure, hasDefinition, publishes }: ClusterFacts): Verdict {
  if (!publishes) return ok('nothing is published');
  if (failure) return unknown('the API server was not asked');
  return hasDefinition
    ? ok('the cluster knows NodeResourceTopology v1alpha2')
    : problem(
        'the cluster does not know NodeResourceTopology v1alpha2',
        '`kubectl apply -f deploy/kustomize/base/noderesourcetopologies.yaml`, or install the scheduler plugins',
      );
}

export function rights({ failure, missingVerbs }: ClusterFacts): Verdict {
  if (failure) return unknown('the API server was not asked');
  if (missingVerbs.length === 0) return ok('the service account may do what the agent needs');
  const verdict = missingVerbs.every((each) => UNSEEN_WITHOUT.has(each)) ? warning : problem;
  return verdict(
    `the service account may not: ${missingVerbs.join(', ')}`,
    'the chart gives these rights, and deploy/kustomize/base/numalign-node.yaml; for --on-refusal deploy/refusals.yaml, for --dra deploy/kustomize/claims',
  );
}

export function node({ failure, hasNode, nodeName }: ClusterFacts): Verdict {
  if (failure) return unknown('the API server was not asked');
  if (hasNode === null)
    return warning(`the Node ${nodeName} may not be read`, 'allow `get nodes`: the object then ends with it');
  return hasNode
    ? ok(`there is a Node ${nodeName}`)
    : problem(
        `there is no Node ${nodeName}: no scheduler would find what is published`,
        'set --node-name to spec.nodeName of this pod',
      );
}
