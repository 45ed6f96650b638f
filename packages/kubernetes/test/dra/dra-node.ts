// A simulated machine with a DRA driver, and the kubelet, runtime and API server that tests play.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CpuSet, ManagerOptions } from 'numalign';
import { onTestFinished } from 'vitest';
import { ApiError } from '../../lib/api-server/api-error.js';
import type { CallOptions } from '../../lib/api-server/api-server.js';
import type { KubernetesObject, Resource } from '../../lib/api-server/resource.js';
import type { FindClaim } from '../../lib/claims/claimed-holdings.js';
import type { ContainerHandlers } from '../../lib/containers/container-handlers.js';
import { DRIVER } from '../../lib/dra/devices.js';
import { DraDriver, type DraDriverOptions } from '../../lib/dra/driver/dra-driver.js';
import type { NodeEvent } from '../../lib/events/event.js';
import type { Message } from '../../lib/protobuf/schema.js';
import { type ContainerFields, containerOf, podOf } from '../support/nri-objects.js';
import { type SimulatedNode, simulatedNode } from '../support/simulated-node.js';
import { PlayedKubelet, type PlayedPlugin } from './played-kubelet.js';

export { DRIVER };

export interface ClaimResult {
  readonly request?: string;
  /** Default: that of the node. */
  readonly pool?: string;
  readonly device: string;
  readonly capacity?: Readonly<Record<string, string>>;
  readonly shareID?: string;
  readonly driver?: string;
  readonly adminAccess?: boolean;
}

export interface ClaimOptions {
  readonly uid?: string;
  readonly pods?: readonly string[];
  readonly config?: readonly object[];
  /** The requests of its spec. */
  readonly requests?: readonly object[];
}

/** A ResourceClaim that a scheduler has allocated. `pods`: names, which are uids, too. */
export function allocated(
  name: string,
  results: readonly ClaimResult[],
  { uid = `${name}-uid`, pods = ['pod'], config = [], requests = [] }: ClaimOptions = {},
): KubernetesObject {
  return {
    ...{ apiVersion: 'resource.k8s.io/v1', kind: 'ResourceClaim' },
    metadata: { name, namespace: 'default', uid, resourceVersion: '1' },
    spec: { devices: { requests } },
    status: {
      allocation: {
        devices: {
          results: results.map(({ request = 'cpus', driver = DRIVER, capacity, ...result }) => ({
            ...{ request, driver, pool: 'node', ...result },
            ...(capacity && { consumedCapacity: capacity }),
          })),
          config,
        },
      },
      reservedFor: pods.map((pod) => ({ resource: 'pods', name: pod, uid: pod })),
    },
  };
}

/** The configuration of a claim for this driver. */
export const configured = (parameters: object, requests?: readonly string[]) => ({
  source: 'FromClaim',
  ...(requests && { requests }),
  opaque: {
    driver: DRIVER,
    parameters: { apiVersion: `${DRIVER}/v1alpha1`, kind: 'ClaimParameters', ...parameters },
  },
});

export const nameOf = ({ metadata }: KubernetesObject) => ({
  namespace: String(metadata.namespace),
  name: metadata.name,
  uid: metadata.uid!,
});

/** What a runtime adds to the environment of a container with these parts of one claim. */
export function environmentOf(cdiFolder: string, grants: readonly string[]): string[] {
  return grants.flatMap((grant) => {
    const [, claim, part] = grant.split('.');
    const file = join(cdiFolder, `${DRIVER}-claim_${claim}.json`);
    const { devices } = JSON.parse(readFileSync(file, 'utf8'));
    const device = devices.find(({ name }: Message) => name === `${claim}-${part}`);
    return device.containerEdits.env as string[];
  });
}

/** The API server: the claims by name. */
export class PlayedClaims {
  readonly claims = new Map<string, KubernetesObject>();
  /** Versions of the resource that it has. */
  versions = ['v1'];
  /** Called before each answer. */
  before: () => Promise<void> | void = () => {};
  gets = 0;
  /** Called before a status is written: it may throw. */
  beforePatch: (signal: AbortSignal) => Promise<void> | void = () => {};
  /** The paths and devices that were written. */
  readonly patches: { readonly resource: Resource; readonly devices: readonly Message[] }[] = [];

  put(...claims: readonly KubernetesObject[]): void {
    for (const claim of claims) this.claims.set(claim.metadata.name, claim);
  }

  readonly get = async (resource: Resource, name: string): Promise<KubernetesObject> => {
    this.gets++;
    await this.before();
    const claim = this.claims.get(name);
    const isServed = this.versions.includes(resource.version);
    if (claim && isServed) return claim;
    const what = isServed
      ? `${resource.plural} "${name}" not found`
      : 'the server could not find the resource';
    throw new ApiError('ERR_API_NOT_FOUND', what);
  };

  readonly patch = async (
    resource: Resource,
    name: string,
    change: object,
    { signal = new AbortController().signal }: CallOptions = {},
  ): Promise<KubernetesObject> => {
    await this.beforePatch(signal);
    const claim = this.claims.get(name)!;
    const { metadata, status } = change as Record<string, any>;
    if (metadata.resourceVersion !== claim.metadata.resourceVersion || metadata.uid !== claim.metadata.uid)
      throw new ApiError('ERR_API_CONFLICT', `${name} has been modified`);
    this.patches.push({ resource, devices: status.devices });
    return this.change(name, status);
  };

  /** Writes members of the status. */
  change(name: string, status: object): KubernetesObject {
    const claim = this.claims.get(name)!;
    const metadata = { ...claim.metadata, resourceVersion: `${versionOf(claim) + 1}` };
    const changed = { ...claim, metadata, status: { ...(claim.status as object), ...status } };
    this.claims.set(name, changed);
    return changed;
  }

  /** The devices in the status of a claim. */
  devicesOf(name: string): readonly Message[] {
    return ((this.claims.get(name)!.status as Message).devices ?? []) as Message[];
  }
}

const versionOf = ({ metadata }: KubernetesObject) => Number(metadata.resourceVersion ?? 0);

export class DraNode {
  readonly root = mkdtempSync(join(tmpdir(), 'numalign-dra-'));
  readonly kubelet = new PlayedKubelet(join(this.root, 'kubelet'));
  readonly claims = new PlayedClaims();
  readonly cdiFolder = join(this.root, 'cdi');
  readonly lines: string[] = [];
  readonly events: NodeEvent[] = [];
  /** What is wrong with NRI; undefined: it works. */
  nriFlaw: string | undefined;
  node!: SimulatedNode;
  handlers!: ContainerHandlers;
  findClaim: FindClaim = (uid) => this.driver.findClaim(uid);
  driver!: DraDriver;
  plugin!: PlayedPlugin;
  #id = 0;

  /** `machine`: in hwloc's words. */
  static async open(options: ManagerOptions = {}, machine?: string): Promise<DraNode> {
    const dra = new DraNode();
    dra.node = await simulatedNode(
      { reservedSystemCPUs: '0', ...options },
      machine,
      undefined,
      undefined,
      undefined,
      (uid) => dra.findClaim(uid),
    );
    dra.handlers = dra.node.handlers;
    await dra.start();
    onTestFinished(async () => {
      await dra.driver.close();
      dra.kubelet.close();
      rmSync(dra.root, { recursive: true, force: true });
    });
    return dra;
  }

  /** Another driver on the same machine. */
  makeDriver(options: Partial<DraDriverOptions> = {}): DraDriver {
    const dra = this;
    return new DraDriver({
      manager: this.node.manager,
      containers: {
        userOf: (grants) => dra.handlers.claimUser(grants),
        get condition() {
          return { part: 'nri', isMet: !dra.nriFlaw, isVital: true, text: dra.nriFlaw ?? '' };
        },
      },
      ...{ kubeletFolder: this.kubelet.folder, cdiFolder: this.cdiFolder, apiServer: this.claims },
      log: (level, message) => void this.lines.push(`${level}: ${message}`),
      recordEvent: (event) => void this.events.push(event),
      ...options,
    });
  }

  async start(options: Partial<DraDriverOptions> = {}): Promise<void> {
    this.driver = this.makeDriver(options);
    await this.driver.start();
    this.plugin = this.kubelet.plugin(await this.kubelet.register());
  }

  /** Ends the driver and the NRI plugin, and starts others with the same record. */
  async restart(): Promise<void> {
    await this.driver.close();
    this.handlers.close();
    this.handlers = this.node.restart();
    await this.start();
  }

  /** The environment that the runtime adds for these devices of a container. */
  environment(devices: readonly Message[], request?: string): string[] {
    const used = devices.filter(
      ({ request_names }) => request === undefined || request_names.includes(request),
    );
    const ids = new Set(used.flatMap((device) => device.cdi_device_ids as string[]));
    const grants = [...ids].map((id) => `claim.${id.slice(id.indexOf('=') + 1).replace(/-(\d+)$/, '.$1')}`);
    return environmentOf(this.cdiFolder, grants);
  }

  /** A container that the runtime is about to create, of a pod whose name is its uid. */
  container(podName: string, name: string, env: readonly string[], fields: ContainerFields = {}) {
    const id = `${podName}-${name}-${++this.#id}`;
    const made = containerOf({ ...fields, id, name, pod_sandbox_id: podName, env: [...env] });
    const cgroups_path = `/kubepods/pod${podName}/${id}`;
    return {
      pod: podOf({ id: podName, name: podName, uid: podName }),
      container: { ...made, linux: { ...made.linux!, cgroups_path } },
      cgroupsPath: cgroups_path,
    };
  }

  get free(): CpuSet {
    return this.node.manager.freeCpus();
  }
}
