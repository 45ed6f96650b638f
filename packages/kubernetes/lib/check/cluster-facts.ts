// ClusterFacts: asks the API server for what publishing needs, and whether it is allowed. Only
// reads.
import { ApiServer } from '../api-server/api-server.js';
import { NodeError } from '../base/errors.js';
import { GROUP, PLURAL, VERSION } from '../publish/node-resource-topology.js';
import type { CheckOptions } from './check-options.js';
import type { ClusterFacts } from './node-facts.js';

type Publish = NonNullable<CheckOptions['publish']>;

/** The verbs and resources that a publisher needs. */
export const NEEDED: readonly (readonly [verb: string, group: string, resource: string])[] = [
  ['list', GROUP, PLURAL],
  ['watch', GROUP, PLURAL],
  ['create', GROUP, PLURAL],
  ['patch', GROUP, PLURAL],
  ['get', '', 'nodes'],
];

/** Those that Events need: without them the agent only works unseen. */
export const NEEDED_FOR_EVENTS: typeof NEEDED = [
  ['create', '', 'events'],
  ['patch', '', 'events'],
];

const REVIEWS = { group: 'authorization.k8s.io', version: 'v1', plural: 'selfsubjectaccessreviews' };
const NODES = { group: '', version: 'v1', plural: 'nodes' };
const TOPOLOGIES = { group: GROUP, version: VERSION, plural: PLURAL };

const NOTHING = { hasNode: null, missingVerbs: [], hasDefinition: false } as const;

export async function readCluster({ apiServer, nodeName }: Publish): Promise<ClusterFacts> {
  let ownServer: ApiServer | undefined;
  try {
    ownServer = apiServer ? undefined : new ApiServer();
    return { nodeName, failure: null, ...(await ask(apiServer ?? ownServer!, nodeName)) };
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    const { code, message } = error;
    return { nodeName, failure: { code, message }, ...NOTHING };
  } finally {
    ownServer?.close();
  }
}

type ServerCalls = NonNullable<Publish['apiServer']>;

async function ask(
  apiServer: ServerCalls,
  nodeName: string,
): Promise<Omit<ClusterFacts, 'nodeName' | 'failure'>> {
  const missingVerbs: string[] = [];
  for (const [verb, group, resource] of [...NEEDED, ...NEEDED_FOR_EVENTS]) {
    if (!(await mayDo(apiServer, verb, group, resource))) missingVerbs.push(`${verb} ${resource}`);
  }
  const hasDefinition = await isThere(apiServer.list(TOPOLOGIES));
  const hasNode = await isThere(apiServer.get(NODES, nodeName));
  // A definition that may not be listed may exist.
  return { missingVerbs, hasNode, hasDefinition: hasDefinition ?? true };
}

// Null if it may not be read.
function isThere(call: Promise<unknown>): Promise<boolean | null> {
  return call.then(
    () => true,
    (error) => {
      if (error instanceof NodeError && error.code === 'ERR_API_NOT_FOUND') return false;
      if (error instanceof NodeError && error.code === 'ERR_API_FORBIDDEN') return null;
      throw error;
    },
  );
}

// Every account may request this review.
async function mayDo(
  apiServer: ServerCalls,
  verb: string,
  group: string,
  resource: string,
): Promise<boolean> {
  const review = await apiServer.create(REVIEWS, {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: { name: '' },
    spec: { resourceAttributes: { verb, group, resource } },
  });
  return (review.status as { allowed?: unknown } | undefined)?.allowed === true;
}
