// ClusterFacts: asks the API server for what publishing needs, and whether it is allowed. Only
// reads.
import { ApiServer } from '../api-server/api-server.js';
import { NodeError } from '../base/errors.js';
import { DRIVER } from '../dra/devices.js';
import { GROUP, PLURAL, VERSION } from '../publish/node-resource-topology.js';
import type { RefusalMode } from '../refusals/refusals.js';
import type { OfCluster } from './check-options.js';
import type { ClusterFacts } from './node-facts.js';

type Right = readonly [verb: string, group: string, resource: string, name?: string];

/** The verbs and resources that a publisher needs. */
export const NEEDED: readonly Right[] = [
  ['list', GROUP, PLURAL],
  ['watch', GROUP, PLURAL],
  ['create', GROUP, PLURAL],
  ['patch', GROUP, PLURAL],
  ['get', '', 'nodes'],
  ['list', '', 'pods'],
  ['watch', '', 'pods'],
];

/** Those that an answer to refusals needs. */
export const NEEDED_FOR_REFUSALS: Readonly<Record<RefusalMode, readonly Right[]>> = {
  keep: [],
  condition: [['patch', '', 'pods/status']],
  evict: [
    ['patch', '', 'pods/status'],
    ['get', '', 'pods'],
    ['create', '', 'pods/eviction'],
  ],
};

/** Those with which the status of a claim says whether it is prepared. */
const NEEDED_FOR_STATUSES: readonly Right[] = [
  ['patch', 'resource.k8s.io', 'resourceclaims/status'],
  // From Kubernetes 1.36 on: for devices of this driver on the node of the account's pod.
  ['associated-node:patch', 'resource.k8s.io', 'resourceclaims/driver', DRIVER],
];

/** Those that devices and claims need. */
export const NEEDED_FOR_CLAIMS: readonly Right[] = [
  ...['get', 'list', 'watch', 'create', 'update', 'delete'].map(
    (verb): Right => [verb, 'resource.k8s.io', 'resourceslices'],
  ),
  ['get', 'resource.k8s.io', 'resourceclaims'],
  ...NEEDED_FOR_STATUSES,
  ['get', '', 'nodes'],
];

export const NEEDED_FOR_EVENTS: typeof NEEDED = [
  ['create', '', 'events'],
  ['patch', '', 'events'],
];

const inWords = ([verb, , resource]: Right) => `${verb} ${resource}`;

/** Without these the agent only works unseen. */
export const UNSEEN_WITHOUT: ReadonlySet<string> = new Set(
  [...NEEDED_FOR_EVENTS, ...NEEDED_FOR_STATUSES].map(inWords),
);

const REVIEWS = { group: 'authorization.k8s.io', version: 'v1', plural: 'selfsubjectaccessreviews' };
const NODES = { group: '', version: 'v1', plural: 'nodes' };
const TOPOLOGIES = { group: GROUP, version: VERSION, plural: PLURAL };

const NOTHING = { hasNode: null, missingVerbs: [], hasDefinition: false } as const;

export async function readCluster(
  { apiServer, nodeName }: OfCluster,
  publishes: boolean,
  onRefusal: RefusalMode = 'keep',
  hasClaims = false,
): Promise<ClusterFacts> {
  const needed = [
    ...(publishes ? NEEDED : []),
    ...NEEDED_FOR_EVENTS,
    ...NEEDED_FOR_REFUSALS[onRefusal],
    ...(hasClaims ? NEEDED_FOR_CLAIMS : []),
  ];
  let ownServer: ApiServer | undefined;
  try {
    ownServer = apiServer ? undefined : new ApiServer();
    const answers = await ask(apiServer ?? ownServer!, nodeName, needed);
    return { nodeName, publishes, failure: null, ...answers };
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    const { code, message } = error;
    return { nodeName, publishes, failure: { code, message }, ...NOTHING };
  } finally {
    ownServer?.close();
  }
}

type ServerCalls = NonNullable<OfCluster['apiServer']>;

async function ask(
  apiServer: ServerCalls,
  nodeName: string,
  needed: readonly Right[],
): Promise<Omit<ClusterFacts, 'nodeName' | 'publishes' | 'failure'>> {
  const missingVerbs: string[] = [];
  for (const right of needed) if (!(await mayDo(apiServer, right))) missingVerbs.push(inWords(right));
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
async function mayDo(apiServer: ServerCalls, [verb, group, resource, name]: Right): Promise<boolean> {
  const [kind, subresource] = resource.split('/');
  const review = await apiServer.create(REVIEWS, {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: { name: '' },
    spec: {
      resourceAttributes: {
        ...{ verb, group, resource: kind },
        ...(subresource && { subresource }),
        ...(name !== undefined && { name }),
      },
    },
  });
  return (review.status as { allowed?: unknown } | undefined)?.allowed === true;
}
