// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parsePod, podTotal, requestOf } from '../../lib/input/pods/pod-request.js';
import { thrownBy } from '../support/error-of.js';

const app = (rest: object = {}) => ({ name: 'app', ...rest });
const podOf = (...containers: object[]) => ({ containers });
const qosOf = (...containers: object[]) => parsePod(podOf(...containers)).qosClass;
const manifest = (spec: object, metadata: object = {}) => ({ apiVersion: 'v1', kind: 'Pod', metadata, spec });

describe('The class of a pod', () => {
  const limits = { cpu: 2 };

  it('follows from its containers', () => {
    expect(qosOf(app({ limits }))).toBe('Burstable');
  });

  it('is the one that the caller gives', () => {
    const pod = parsePod({ qosClass: 'Guaranteed', ...podOf(app({ limits })) });
    expect([pod.qosClass, pod.notGuaranteed]).toEqual(['Guaranteed', null]);
    const other = parsePod({ qosClass: 'Burstable', ...podOf(app({ limits: { cpu: 2, memory: 1 } })) });
    expect([other.qosClass, other.notGuaranteed]).toEqual(['Burstable', 'the pod is Burstable']);
  });

  it('is refused if Kubernetes has none with that name', () => {
    const error = thrownBy(() => parsePod({ qosClass: 'guaranteed', ...podOf(app({ limits })) }));
    expect(error).toMatchObject({
      code: 'ERR_INVALID_POD',
      details: { field: 'qosClass', value: 'guaranteed', valid: 'one of Guaranteed, Burstable, BestEffort' },
    });
  });
});

describe('A pod', () => {
  it('is read from a Kubernetes manifest, with all irrelevant members', () => {
    const pod = parsePod({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'db',
        namespace: 'prod',
        uid: '39b37746-7f5e',
        labels: { app: 'db' },
        creationTimestamp: null,
      },
      spec: {
        overhead: { cpu: '250m' },
        nodeName: 'n1',
        resources: null,
        initContainers: [
          { name: 'setup', image: 'busybox', resources: { limits: { cpu: '1', memory: '64Mi' } } },
          {
            name: 'proxy',
            restartPolicy: 'Always',
            resources: { requests: { cpu: '100m' }, limits: { cpu: '0.1', memory: '32M' }, claims: [] },
          },
        ],
        containers: [
          {
            name: 'db',
            image: 'db:1',
            ports: [{ containerPort: 5432 }],
            resources: {
              limits: { cpu: 2, memory: '1.5Gi', 'example.com/gpu': '1', 'hugepages-2Mi': '4Mi' },
            },
          },
        ],
      },
      status: { phase: 'Pending' },
    });
    expect(pod).toEqual({
      uid: '39b37746-7f5e',
      name: 'db',
      namespace: 'prod',
      qosClass: 'Guaranteed',
      notGuaranteed: null,
      resources: null,
      containers: [
        { name: 'setup', kind: 'init', requests: { cpu: 1000, memory: 67_108_864 } },
        { name: 'proxy', kind: 'sidecar', requests: { cpu: 100, memory: 32_000_000 } },
        {
          name: 'db',
          kind: 'app',
          requests: { cpu: 2000, memory: 1_610_612_736, 'example.com/gpu': 1, 'hugepages-2Mi': 4_194_304 },
        },
      ],
    });
  });

  it('has all devices by DRA that its status names of a container', () => {
    const resources = ['example.com/gpu', 'example.com/nic'];
    const requestMappings = resources.map((resourceName) => ({ containerName: 'app', resourceName }));
    const status = { extendedResourceClaimStatus: { requestMappings } };
    const pod = parsePod({ ...manifest(podOf(app())), status });
    expect(pod.draExtendedResources).toEqual({ app: resources });
  });

  it('is the same in plain words and as a manifest, with resources or without', () => {
    const amounts = fc.record(
      { cpu: fc.constantFrom('0', '1', '1500m', 2), memory: fc.constantFrom('0', '1Gi', 4096) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(amounts, { minLength: 1, maxLength: 4 }), fc.nat({ max: 3 }), (list, inits) => {
        const flat = list.map((limits, i) => ({ name: `c${i}`, limits }));
        const nested = list.map((limits, i) => ({ name: `c${i}`, resources: { limits } }));
        const split = (all: object[]) => ({
          initContainers: all.slice(0, -1 - inits),
          containers: all.slice(-1 - inits),
        });
        const plain = parsePod({ uid: 'u', name: 'n', ...split(flat) });
        expect(parsePod({ uid: 'u', name: 'n', ...split(nested) })).toEqual(plain);
        expect(parsePod(manifest(split(nested), { uid: 'u', name: 'n' }))).toEqual(plain);
      }),
    );
  });

  it('requests its limits if it omits a request, but an explicit zero stays', () => {
    const pod = parsePod(podOf(app({ requests: { cpu: 0 }, limits: { cpu: 2, memory: '1Ki' } })));
    expect(pod.containers[0]?.requests).toEqual({ cpu: 0, memory: 1024 });
    expect(pod.qosClass).toBe('Burstable');
  });

  it('requests rounded-up amounts: millicores of cpu, whole units of everything else', () => {
    const requests = {
      cpu: '1.0001',
      memory: '1.5',
      'ephemeral-storage': '100m',
      'hugepages-1Gi': '1Gi',
      'x.kubernetes.io/y': '1.5',
    };
    expect(parsePod(podOf(app({ requests }))).containers[0]?.requests).toEqual({
      cpu: 1001,
      memory: 2,
      'ephemeral-storage': 1,
      'hugepages-1Gi': 1_073_741_824,
      'x.kubernetes.io/y': 2,
    });
  });

  it('has no name or uid by default', () => {
    expect(parsePod(podOf(app()))).toMatchObject({ uid: undefined, name: undefined, qosClass: 'BestEffort' });
    expect(parsePod({ kind: 'Pod', spec: podOf(app()) })).toMatchObject({ uid: undefined, name: undefined });
  });

  it('is frozen', () => {
    const pod = parsePod(podOf(app({ limits: { cpu: 1 } })));
    for (const part of [pod, pod.containers, pod.containers[0], pod.containers[0]?.requests]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });
});

describe('The QoS class', () => {
  it('is Guaranteed if every container limits cpu and memory and requests as much', () => {
    const full = { cpu: 1, memory: '1Gi' };
    expect(qosOf(app({ limits: full }))).toBe('Guaranteed');
    expect(qosOf(app({ requests: { cpu: '1000m', memory: 2 ** 30 }, limits: full }))).toBe('Guaranteed');
    expect(qosOf(app({ limits: full }), { name: 'b', limits: { ...full, 'a.b/c': 1 } })).toBe('Guaranteed');
    expect(qosOf(app({ requests: { cpu: '0.9999', memory: '1Gi' }, limits: full }))).toBe('Burstable');
    expect(qosOf(app({ limits: full }), { name: 'b' })).toBe('Burstable');
    expect(qosOf(app({ limits: { cpu: 1 } }))).toBe('Burstable');
    expect(qosOf(app({ requests: { memory: 1 } }))).toBe('Burstable');
  });

  it('is BestEffort without requests for cpu and memory', () => {
    expect(qosOf(app())).toBe('BestEffort');
    expect(qosOf(app({ limits: { cpu: 0, memory: '0' } }))).toBe('BestEffort');
    expect(qosOf(app({ limits: { 'example.com/gpu': 1, 'hugepages-2Mi': '2Mi' } }))).toBe('BestEffort');
  });

  it('is never Guaranteed when an init container or container lacks a limit, or requests less, and says which', () => {
    const flaw = fc.constantFrom<object>(
      {},
      { limits: { cpu: 1 } },
      { limits: { memory: 1 } },
      { limits: { cpu: 0, memory: 1 } },
      { requests: { cpu: 1, memory: 1 } },
      { requests: { cpu: 0 }, limits: { cpu: 1, memory: 1 } },
      { requests: { cpu: '999999999n' }, limits: { cpu: 1, memory: 1 } },
    );
    fc.assert(
      fc.property(
        flaw,
        fc.nat({ max: 4 }),
        fc.nat({ max: 4 }),
        fc.boolean(),
        (flawed, before, after, isInit) => {
          const sound = (_: unknown, i: number): object => ({
            name: `c${i}`,
            limits: { cpu: i + 1, memory: '1Gi' },
          });
          const all = Array.from({ length: before + after + 1 }, sound);
          const pod = (list: object[]) =>
            isInit ? { initContainers: list, containers: all.slice(-1) } : { containers: list };
          const list = isInit ? all.slice(0, -1) : all;
          expect(parsePod(pod(list)).qosClass).toBe('Guaranteed');
          const { qosClass, notGuaranteed } = parsePod(
            pod(list.toSpliced(before, 0, { name: 'flawed', ...flawed })),
          );
          expect(qosClass).toBe('Burstable');
          expect(notGuaranteed).toMatch(
            /^container flawed (has no limit of|requests less) (cpu|memory|cpu and memory)( than its limit)?$/,
          );
        },
      ),
    );
  });
});

describe('What a pod needs of something at one time', () => {
  const cpusOf = (...initContainers: object[]) => {
    const pod = parsePod({ initContainers, containers: [app({ limits: { cpu: 2 } })] });
    return podTotal(pod, (container) => requestOf(container, 'cpu')) / 1000;
  };
  const setup = { name: 'setup', limits: { cpu: 3 } };
  const sidecar = { name: 'log', restartPolicy: 'Always', limits: { cpu: 2 } };

  it('is the request of its containers and sidecars, or of an init container and the sidecars before it', () => {
    expect(cpusOf()).toBe(2);
    expect(cpusOf(setup)).toBe(3);
    expect(cpusOf(setup, sidecar)).toBe(4);
    expect(cpusOf(sidecar, setup)).toBe(5);
  });
});

describe('Resources of a whole pod', () => {
  const whole = (resources: object, ...containers: object[]) =>
    parsePod({ ...podOf(...containers), resources });
  const own = { cpu: 1, memory: 1000 };

  it('alone say the QoS class', () => {
    const burstable = whole({ requests: own, limits: { ...own, cpu: 2 } }, app({ limits: own }));
    expect(burstable).toMatchObject({
      qosClass: 'Burstable',
      notGuaranteed: 'the pod as a whole requests less cpu than its limit',
      resources: { ofContainers: { qosClass: 'Guaranteed', notGuaranteed: null } },
    });
    const guaranteed = whole({ limits: { cpu: '2500m', memory: 5000 } }, app());
    expect(guaranteed).toMatchObject({
      qosClass: 'Guaranteed',
      notGuaranteed: null,
      resources: {
        requests: { cpu: 2500, memory: 5000 },
        limits: { cpu: 2500, memory: 5000 },
        ofContainers: { qosClass: 'BestEffort' },
        isManaged: false,
      },
    });
    expect(whole({ limits: { 'hugepages-2Mi': '4Mi' } }, app()).qosClass).toBe('BestEffort');
  });

  it('are none if they name nothing', () => {
    for (const resources of [{}, { limits: {} }, { requests: {}, limits: null }])
      expect(whole(resources, app({ limits: own }))).toMatchObject({
        qosClass: 'Guaranteed',
        resources: null,
      });
  });

  it('request the sum of the containers, or else the limit, by default', () => {
    const [setup, sidecar] = [
      { name: 'setup', requests: { cpu: 3 } },
      { name: 'log', restartPolicy: 'Always', requests: { cpu: '500m' } },
    ];
    const request = (initContainers: object[], cpu: string) =>
      parsePod({
        resources: { limits: { cpu: 9, memory: 500 } },
        initContainers,
        containers: [app({ requests: { cpu } })],
      }).resources?.requests;
    expect(request([setup, sidecar], '1500m')).toEqual({ cpu: 3000, memory: 500 });
    expect(request([sidecar, setup], '1500m')).toEqual({ cpu: 3500, memory: 500 });
    expect(request([setup, sidecar], '2500m')).toEqual({ cpu: 3000, memory: 500 });
    expect(request([setup, sidecar], '2600m')).toEqual({ cpu: 3100, memory: 500 });
  });

  it('mark containers that are guaranteed themselves', () => {
    const pod = whole(
      { limits: { cpu: 8, memory: 8000 } },
      { name: 'a', limits: own },
      { name: 'b', limits: own, requests: { cpu: '500m' } },
      { name: 'c', limits: { cpu: 1 } },
      { name: 'd', limits: own, requests: own },
      { name: 'e', requests: own },
    );
    expect(pod.resources?.guaranteed).toEqual(['a', 'd']);
  });

  it('may be as much as a container may use', () => {
    const resources = { limits: { cpu: 2 } };
    const pod = parsePod(manifest({ ...podOf(app({ limits: { cpu: 2 } })), resources }));
    expect(pod.resources?.limits).toEqual({ cpu: 2000 });
  });

  it('are refused with the API’s errors', () => {
    const refuses = (resources: object, field: string, ...containers: object[]) => {
      const error = thrownBy(() => parsePod(manifest({ ...podOf(...containers), resources })));
      expect(error?.code, field).toBe('ERR_INVALID_POD');
      expect(error?.details.field).toBe(field);
    };
    refuses({ limits: { 'example.com/nic': 1 } }, 'spec.resources.limits', app());
    refuses({ requests: { storage: 1 } }, 'spec.resources.requests', app());
    refuses({ requests: { cpu: 2 }, limits: { cpu: 1 } }, 'spec.resources.requests.cpu', app());
    refuses({ requests: { 'hugepages-2Mi': '2Mi' } }, 'spec.resources.requests.hugepages-2Mi', app());
    const two = app({ requests: { cpu: 2 } });
    refuses({ requests: { cpu: '1999m' } }, 'spec.resources.requests.cpu', two);
    expect(parsePod(manifest({ ...podOf(two), resources: { requests: { cpu: 2 } } })).qosClass).toBe(
      'Burstable',
    );
    const limit = app({ requests: { cpu: 1 }, limits: { cpu: 2 } });
    refuses({ requests: { cpu: 1 }, limits: { cpu: '1500m' } }, 'spec.resources.limits.cpu', limit);
    for (const [resource, requested, limit, shown] of [
      ['cpu', 4, '2500m', '4000m'],
      ['memory', '4Ki', 1, '4096'],
      ['hugepages-2Mi', '4Mi', '2Mi', '4194304'],
    ] as const) {
      const resources = { requests: { [resource]: requested }, limits: { [resource]: limit } };
      const over = thrownBy(() => parsePod({ ...podOf(app()), resources }));
      expect(String(over?.details.value)).toBe(shown);
    }
    const error = thrownBy(() => parsePod({ ...podOf(app()), resources: { request: {} } }));
    expect(error?.code).toBe('ERR_INVALID_OPTION');
  });
});

describe('A pod is refused', () => {
  const refused = (pod: unknown, field: string, code = 'ERR_INVALID_POD') => {
    const error = thrownBy(() => parsePod(pod));
    expect(error?.code, field).toBe(code);
    expect(error?.details).toMatchObject({ field, valid: expect.any(String) });
    expect(error?.message).toContain(`${field} must be `);
    return error;
  };

  it('when it is no pod, and the error names the kind', () => {
    for (const value of [undefined, null, 7, 'pod', [app()]]) refused(value, 'the pod');
    expect(refused({ apiVersion: 'apps/v1', kind: 'Deployment', spec: {} }, 'kind')?.message).toContain(
      "'Deployment'",
    );
    refused({ apiVersion: 'v1', spec: podOf(app()) }, 'kind');
    refused({ ...manifest(podOf(app())), apiVersion: 'v2' }, 'apiVersion');
    refused({ kind: 'Pod' }, 'spec');
    refused({ kind: 'Pod', metadata: 'db', spec: podOf(app()) }, 'metadata');
  });

  it('without containers, or with something else in their place', () => {
    expect(refused({}, 'containers')?.message).toBe(
      'containers must be a list of at least one container, but there is none',
    );
    refused(podOf(), 'containers');
    refused({ containers: app() }, 'containers');
    refused({ containers: [app(), 'b'] }, 'containers[1]');
    refused({ containers: new Array(2) }, 'containers[0]');
    refused(manifest({ initContainers: [app()] }), 'spec.containers');
    refused(manifest({ initContainers: {}, containers: [app()] }), 'spec.initContainers');
  });

  it('when a container has no proper name of its own', () => {
    for (const name of [
      undefined,
      null,
      7,
      '',
      'A',
      'a_b',
      '-a',
      'a-',
      'a.b',
      'a\n',
      'a\u001b[2J',
      'x'.repeat(64),
    ]) {
      refused({ containers: [{ name }] }, 'containers[0].name');
    }
    refused(podOf(app(), app()), 'containers[1].name');
    refused(manifest({ initContainers: [app()], containers: [app()] }), 'spec.containers[0].name');
    expect(parsePod(podOf({ name: '0' }, { name: 'x'.repeat(63) })).containers).toHaveLength(2);
  });

  it('when its own name or uid could not be printed', () => {
    for (const text of ['', 'a\nb', 'a\u202eb', 'x'.repeat(254), 7, {}]) {
      refused({ ...podOf(app()), name: text }, 'name');
      refused({ ...podOf(app()), uid: text }, 'uid');
      refused(manifest(podOf(app()), { uid: text }), 'metadata.uid');
    }
  });

  it('when a restartPolicy is in a place where Kubernetes has none', () => {
    refused(podOf(app({ restartPolicy: 'Always' })), 'containers[0].restartPolicy');
    for (const restartPolicy of ['Never', 'OnFailure', 'always', '', true]) {
      refused(
        { initContainers: [{ name: 'i', restartPolicy }], ...podOf(app()) },
        'initContainers[0].restartPolicy',
      );
    }
  });

  it('when an amount is malformed, negative, above its limit, too large, or half a device', () => {
    const resources = 'spec.containers[0].resources';
    const given = (side: object) => manifest(podOf(app({ resources: side })));
    refused(given({ requests: { cpu: '1 ' } }), `${resources}.requests.cpu`, 'ERR_INVALID_QUANTITY');
    refused(given({ limits: { cpu: null } }), `${resources}.limits.cpu`, 'ERR_INVALID_QUANTITY');
    refused(given({ limits: { memory: '-1' } }), `${resources}.limits.memory`);
    const error = refused(
      given({ requests: { cpu: '2001m' }, limits: { cpu: 2 } }),
      `${resources}.requests.cpu`,
    );
    expect(error?.details.value).toBe('2001m');
    refused(given({ requests: { cpu: '1e13' } }), `${resources}.requests.cpu`, 'ERR_INVALID_QUANTITY');
    refused(given({ limits: { memory: '7Ei' } }), `${resources}.requests.memory`, 'ERR_INVALID_QUANTITY');
    refused(given({ requests: { 'example.com/gpu': '500m' } }), `${resources}.requests.example.com/gpu`);
    refused(given({ requests: [] }), `${resources}.requests`);
    refused(given([]), resources);
  });

  it('when a resource has a name that Kubernetes would not take', () => {
    for (const name of [
      '',
      'a b',
      'a\n',
      '/x',
      'x/',
      'a/b/c',
      'UP.com/x',
      '-x',
      'é',
      `a/${'x'.repeat(64)}`,
    ]) {
      refused(podOf(app({ requests: { [name]: 1 } })), 'containers[0].requests');
    }
    refused(podOf(app({ requests: JSON.parse('{ "__proto__": 1 }') })), 'containers[0].requests');
    expect(parsePod(podOf(app({ requests: { constructor: 1 } }))).containers[0]?.requests).toEqual({
      constructor: 1,
    });
  });

  it('when it has two kinds of requests', () => {
    refused(podOf(app({ resources: {}, limits: { cpu: 1 } })), 'containers[0].resources');
  });

  it('when a plain one has a misspelled key, and the error names the nearest', () => {
    const nearest = (pod: unknown) => {
      const error = thrownBy(() => parsePod(pod));
      expect(error?.code).toBe('ERR_INVALID_OPTION');
      return error?.details.nearest;
    };
    expect(nearest({ ...podOf(app()), initcontainers: [] })).toBe('initContainers');
    expect(nearest(podOf(app({ limit: { cpu: 1 } })))).toBe('limits');
    expect(nearest(podOf(app({ resources: { request: { cpu: 1 } } })))).toBe('requests');
  });

  it('when it requests hugepages of one size twice', () => {
    const limits = { 'hugepages-2Mi': '2Mi', 'hugepages-2048Ki': '2Mi' };
    refused(podOf(app({ limits })), 'containers[0].limits');
  });

  it('needs hugepages in whole pages, and equal requests and limits of hugepages and devices', () => {
    const refused = (resources: object, field: string) => {
      const error = thrownBy(() => parsePod(podOf(app(resources))));
      expect([error?.code, String(error?.details.field)]).toEqual([
        'ERR_INVALID_POD',
        expect.stringContaining(field),
      ]);
    };
    refused({ limits: { 'hugepages-2Mi': '3Mi' } }, 'limits.hugepages-2Mi');
    refused({ limits: { 'hugepages-': '2Mi' } }, 'limits');
    refused({ limits: { 'hugepages-0': '2Mi' } }, 'limits');
    refused({ limits: { 'hugepages-1500m': '2Mi' } }, 'limits');
    refused(
      { requests: { 'hugepages-2Mi': '2Mi' }, limits: { 'hugepages-2Mi': '4Mi' } },
      'requests.hugepages-2Mi',
    );
    refused(
      { requests: { 'example.com/gpu': 1 }, limits: { 'example.com/gpu': 2 } },
      'requests.example.com/gpu',
    );
    const { containers } = parsePod(
      podOf(app({ requests: { 'example.com/gpu': 1 }, limits: { 'hugepages-1Gi': '2Gi' } })),
    );
    expect(containers[0]?.requests).toEqual({ 'example.com/gpu': 1, 'hugepages-1Gi': 2 ** 31 });
  });
});
