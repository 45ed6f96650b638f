// ResourceSlices and ResourceClaims as definitions of custom resources, for an API server that is
// older than Dynamic Resource Allocation. The fields, and the limits that such a schema can have, are
// those of resource.k8s.io/v1 of Kubernetes 1.36, as its reference describes them: what a driver writes
// beyond is left out or refused, as there.
const GROUP = 'resource.k8s.io';

const text = (maxLength, pattern) => ({ type: 'string', maxLength, ...(pattern && { pattern }) });
const list = (items, maxItems) => ({ type: 'array', items, maxItems });
const map = (values, maxProperties) => ({
  type: 'object',
  additionalProperties: values,
  ...(maxProperties && { maxProperties }),
});
const object = (properties, ...required) => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});
const INTEGER = { type: 'integer', format: 'int64' };
const BOOLEAN = { type: 'boolean' };
const ANY = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const QUANTITY = {
  'x-kubernetes-int-or-string': true,
  pattern: '^[+-]?([0-9]+|[0-9]+[.][0-9]*|[.][0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$',
};
const LABEL = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$';
const SUBDOMAIN = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$';
const DRIVER = text(63, SUBDOMAIN);
const POOL = text(253);
const DEVICE = text(63, LABEL);

const TAINT = object(
  {
    key: text(253),
    value: text(63),
    effect: { type: 'string', enum: ['None', 'NoSchedule', 'NoExecute'] },
    timeAdded: { type: 'string', format: 'date-time' },
  },
  'key',
  'effect',
);
const ATTRIBUTE = object({
  ...{ int: INTEGER, bool: BOOLEAN, string: text(64), version: text(64) },
  ...{ ints: list(INTEGER, 64), bools: list(BOOLEAN, 64), strings: list(text(64), 64) },
});
const CAPACITY = object(
  {
    value: QUANTITY,
    requestPolicy: object({
      default: QUANTITY,
      validValues: list(QUANTITY, 10),
      validRange: object({ min: QUANTITY, max: QUANTITY, step: QUANTITY }, 'min'),
    }),
  },
  'value',
);
const SLICE = object(
  {
    driver: DRIVER,
    nodeName: text(253, SUBDOMAIN),
    allNodes: BOOLEAN,
    pool: object(
      { name: POOL, generation: INTEGER, resourceSliceCount: { ...INTEGER, minimum: 1 } },
      'name',
      'generation',
      'resourceSliceCount',
    ),
    devices: list(
      object(
        {
          name: DEVICE,
          attributes: map(ATTRIBUTE, 32),
          capacity: map(CAPACITY, 32),
          allowMultipleAllocations: BOOLEAN,
          taints: list(TAINT, 16),
        },
        'name',
      ),
      128,
    ),
  },
  'driver',
  'pool',
);

const CONFIG = {
  requests: list(text(127), 32),
  opaque: object({ driver: DRIVER, parameters: ANY }, 'driver', 'parameters'),
};
const EXACTLY = object(
  {
    deviceClassName: text(253, SUBDOMAIN),
    selectors: list(object({ cel: object({ expression: text(10_240) }, 'expression') }), 32),
    allocationMode: { type: 'string', enum: ['ExactCount', 'All'] },
    count: INTEGER,
    adminAccess: BOOLEAN,
    capacity: object({ requests: map(QUANTITY) }),
  },
  'deviceClassName',
);
const CLAIM = object({
  devices: object({
    requests: list(object({ name: DEVICE, exactly: EXACTLY }, 'name'), 32),
    constraints: list(object({ requests: list(text(127), 32), matchAttribute: text(317) }), 32),
    config: list(object(CONFIG), 32),
  }),
});
const CONDITION = object(
  {
    type: text(316),
    status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
    reason: { ...text(1024, '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$'), minLength: 1 },
    message: text(32_768),
    lastTransitionTime: { type: 'string', format: 'date-time' },
    observedGeneration: INTEGER,
  },
  'type',
  'status',
  'reason',
  'message',
  'lastTransitionTime',
);
const RESULT = {
  ...{ request: text(127), driver: DRIVER, pool: POOL, device: DEVICE, shareID: text(36) },
  ...{ adminAccess: BOOLEAN, consumedCapacity: map(QUANTITY) },
};
const CLAIM_STATUS = object({
  allocation: object({
    devices: object({
      results: list(object(RESULT, 'request', 'driver', 'pool', 'device'), 32),
      config: list(object({ ...CONFIG, source: { type: 'string' } }, 'source'), 64),
    }),
  }),
  reservedFor: list(
    object(
      { apiGroup: text(253), resource: text(253), name: text(253), uid: text(64) },
      'resource',
      'name',
      'uid',
    ),
    256,
  ),
  devices: list(
    object(
      {
        ...{ driver: DRIVER, pool: POOL, device: DEVICE, shareID: text(36) },
        ...{ conditions: list(CONDITION, 8), data: ANY },
      },
      'driver',
      'pool',
      'device',
    ),
    32,
  ),
});

const definition = (kind, scope, properties, subresources) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: `${kind.toLowerCase()}s.${GROUP}`,
    // The server guards the domain.
    annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' },
  },
  spec: {
    ...{ group: GROUP, scope },
    names: { kind, listKind: `${kind}List`, plural: `${kind.toLowerCase()}s`, singular: kind.toLowerCase() },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: { openAPIV3Schema: object(properties, 'spec') },
        ...(subresources && { subresources }),
      },
    ],
  },
});

export const DEFINITIONS = [
  definition('ResourceSlice', 'Cluster', { spec: SLICE }),
  definition('ResourceClaim', 'Namespaced', { spec: CLAIM, status: CLAIM_STATUS }, { status: {} }),
];
