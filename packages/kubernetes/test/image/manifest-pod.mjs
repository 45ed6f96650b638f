// ManifestPod: a pod as a kubelet has a runtime run it, from the pod template of a manifest: its
// security contexts, volumes, environment and arguments. What a kubelet does for the API server
// (service accounts, probes, restarts) is left out.
import { mkdirSync, mkdtempSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { credentials, makeClientConstructor } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { prepareComponents } from '../containers/components.mjs';

const PROTO = fileURLToPath(new URL('cri-security.proto', import.meta.url));
const ROOT = protobuf.parse(readFileSync(PROTO, 'utf8'), { keepCase: true }).root;
const SERVICE = '/runtime.v1.RuntimeService/';
const NAMESPACE = { pod: 0, container: 1, node: 2 };
const PROPAGATION = { None: 0, HostToContainer: 1, Bidirectional: 2 };
const PROFILE = { RuntimeDefault: 0, Unconfined: 1, Localhost: 2 };
const MILLI = 1000;

const method = (name) => {
  const [request, response] = ['Request', 'Response'].map((end) =>
    ROOT.lookupType(`runtime.v1.${name}${end}`),
  );
  return {
    path: SERVICE + name,
    requestStream: false,
    responseStream: false,
    // Unlike encode(), fails at names that the text does not have.
    requestSerialize: (value) => Buffer.from(request.encode(request.fromObject(value)).finish()),
    responseDeserialize: (bytes) => response.toObject(response.decode(bytes)),
  };
};
const Client = makeClientConstructor({
  RunPodSandbox: method('RunPodSandbox'),
  CreateContainer: method('CreateContainer'),
});

function caller(socketPath) {
  const client = new Client(`unix://${socketPath}`, credentials.createInsecure(), {
    'grpc.default_authority': 'localhost',
  });
  const call = (name, request) =>
    new Promise((resolve, reject) => {
      client[name](request, { deadline: Date.now() + 240_000 }, (error, response) =>
        error ? reject(error) : resolve(response),
      );
    });
  return { call, close: () => client.close() };
}

/** The mode of a capability set is in the `drop` and `add` of a container. */
const profileOf = (profile) => profile && { seccomp: { profile_type: PROFILE[profile.type] } };

const namespacesOf = ({ hostNetwork, hostPID, hostIPC }) => ({
  network: hostNetwork ? NAMESPACE.node : NAMESPACE.pod,
  // Containers of a pod have pid namespaces of their own.
  pid: hostPID ? NAMESPACE.node : NAMESPACE.container,
  ipc: hostIPC ? NAMESPACE.node : NAMESPACE.pod,
});

/** Writes a ConfigMap as a kubelet does, so that a change of all files is one rename. */
export function writeConfigMap(folder, data) {
  mkdirSync(folder, { recursive: true });
  const version = mkdtempSync(join(folder, '..version-'));
  for (const [name, text] of Object.entries(data)) writeFileSync(join(version, name), text);
  symlinkSync(version.slice(folder.length + 1), join(folder, '..data_new'));
  renameSync(join(folder, '..data_new'), join(folder, '..data'));
  for (const name of Object.keys(data)) {
    try {
      symlinkSync(join('..data', name), join(folder, name));
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
  }
}

/** CPU shares and bytes of the resources in a manifest. */
function resourcesOf({ requests = {}, limits = {} } = {}) {
  const [, number, unit] = /^(\d+)(Mi|Gi)$/.exec(limits.memory ?? '0Mi');
  const milli = /^(\d+)m$/.exec(requests.cpu ?? '0m')[1];
  return {
    cpu_shares: Math.max(2, Math.floor((milli * 1024) / MILLI)),
    memory_limit_in_bytes: number * (unit === 'Gi' ? 1 << 30 : 1 << 20),
  };
}

export class ManifestPod {
  containerId;
  sandboxId;
  /** Where each volume is on the machine. */
  volumes;
  #options;

  /**
   * `runtime`: a Containerd. `template`: `{ metadata, spec }` of a workload. `image`: its name at
   * the runtime, instead of the manifest's. `folder`: for volumes. `places`: folders of the machine
   * that are elsewhere in the test. `configMaps`: the data of each, by name. `facts`: of the
   * downward API, by field path. `args`: instead of the manifest's.
   */
  constructor(options) {
    this.#options = options;
    const { template, folder, places = {}, configMaps = {} } = options;
    const name = template.metadata.labels['app.kubernetes.io/name'];
    this.uid = `${name}-${process.pid}-${Date.now()}`;
    this.volumes = new Map(
      template.spec.volumes.map((volume) => {
        const own = join(folder, this.uid, volume.name);
        if (volume.configMap) writeConfigMap(own, configMaps[volume.configMap.name]);
        else if (volume.emptyDir) mkdirSync(own, { recursive: true });
        else if (!volume.hostPath) throw new Error(`volume ${volume.name} is of an unknown kind`);
        const path = volume.hostPath?.path;
        return [volume.name, path === undefined ? own : (places[path] ?? path)];
      }),
    );
  }

  /** Runs its container; returns once the runtime has started it. */
  async start(pods) {
    const { runtime, template } = this.#options;
    const { call, close } = caller(runtime.socketPath);
    try {
      const config = this.#sandbox();
      ({ pod_sandbox_id: this.sandboxId } = await call('RunPodSandbox', { config }));
      ({ container_id: this.containerId } = await call('CreateContainer', {
        pod_sandbox_id: this.sandboxId,
        config: this.#container(template.spec.containers[0]),
        sandbox_config: config,
      }));
      await pods.call('StartContainer', { container_id: this.containerId });
    } finally {
      close();
    }
  }

  async remove(pods) {
    if (this.sandboxId === undefined) return;
    await pods.call('StopPodSandbox', { pod_sandbox_id: this.sandboxId });
    await pods.call('RemovePodSandbox', { pod_sandbox_id: this.sandboxId });
    this.sandboxId = undefined;
  }

  /** The file with the container's output. */
  get log() {
    return join(this.#options.folder, `${this.uid}.log`);
  }

  #sandbox() {
    const { runtime, template, folder } = this.#options;
    const { labels, annotations = {} } = template.metadata;
    return {
      metadata: { name: this.uid, uid: this.uid, namespace: 'numalign' },
      ...{ labels, annotations, log_directory: folder },
      linux: {
        cgroup_parent: runtime.cgroupParent,
        security_context: {
          namespace_options: namespacesOf(template.spec),
          privileged: template.spec.containers.some((each) => each.securityContext?.privileged === true),
          ...profileOf(template.spec.securityContext?.seccompProfile),
        },
      },
    };
  }

  #container({ name, args, env = [], volumeMounts, resources, securityContext = {} }) {
    const { image, template, facts = {} } = this.#options;
    const envs = env.map(({ name: key, value, valueFrom }) => ({
      key,
      value: value ?? facts[valueFrom.fieldRef.fieldPath],
    }));
    // As the kubelet does with references to its environment.
    const filled = (text) =>
      text.replace(/\$\((\w+)\)/g, (_, key) => envs.find((each) => each.key === key).value);
    return {
      metadata: { name },
      image: { image },
      args: (this.#options.args ?? args).map(filled),
      envs,
      log_path: `${this.uid}.log`,
      mounts: volumeMounts.map((mount) => ({
        container_path: mount.mountPath,
        host_path: this.volumes.get(mount.name),
        readonly: mount.readOnly === true,
        propagation: PROPAGATION[mount.mountPropagation ?? 'None'],
      })),
      linux: {
        resources: resourcesOf(resources),
        security_context: {
          ...(securityContext.capabilities && {
            capabilities: {
              drop_capabilities: securityContext.capabilities.drop ?? [],
              add_capabilities: securityContext.capabilities.add ?? [],
            },
          }),
          privileged: securityContext.privileged === true,
          namespace_options: namespacesOf(template.spec),
          ...(securityContext.runAsUser !== undefined && {
            run_as_user: { value: securityContext.runAsUser },
          }),
          readonly_rootfs: securityContext.readOnlyRootFilesystem === true,
          no_new_privs: securityContext.allowPrivilegeEscalation === false,
          ...profileOf(securityContext.seccompProfile ?? template.spec.securityContext?.seccompProfile),
          // Those of the kubelet's default.
          ...(securityContext.privileged !== true && { masked_paths: MASKED, readonly_paths: READ_ONLY }),
        },
      },
    };
  }
}

const MASKED = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
];
const READ_ONLY = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

// Of a pod network for tests: it answers like a network plugin, and has no interface but loopback.
const plugin = (busybox) => `#!/bin/sh
cat >/dev/null
[ "$CNI_COMMAND" = VERSION ] && { echo '{"cniVersion":"0.4.0","supportedVersions":["0.4.0"]}'; exit; }
[ "$CNI_COMMAND" = ADD ] && nsenter --net="$CNI_NETNS" ${busybox} ip link set lo up
echo '{"cniVersion":"0.4.0","interfaces":[{"name":"eth0","sandbox":"'"$CNI_NETNS"'"}],"ips":[{"version":"4","interface":0,"address":"192.0.2.1/32"}]}'
`;

/** Gives a runtime's pods a network of their own without a way out. */
export function writePodNetwork(runtime) {
  const folder = join(runtime.folder, 'cni');
  mkdirSync(dirname(folder), { recursive: true });
  for (const name of ['loopback', 'none'])
    writeFileSync(join(folder, name), plugin(prepareComponents().busybox), { mode: 0o755 });
  const configuration = { cniVersion: '0.4.0', name: 'none', plugins: [{ type: 'none' }] };
  writeFileSync(join(folder, '10-none.conflist'), JSON.stringify(configuration));
}
