// Containerd: a containerd of the tests' own, which ends with them whatever happens.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RuntimeClient } from '@numalign/kubernetes';
import { run } from '../../../../../test/vm/debian-packages.mjs';
import { containerdVersion, prepareComponents, RELEASE } from '../components.mjs';
import { IMAGE } from '../image.mjs';
import { makeGroups } from './cgroups.mjs';

const KEEPER = fileURLToPath(new URL('keeper.mjs', import.meta.url));
const START_MS = 30_000;

function configuration(folder, { runc, nri, nriTimeout, bySystemd, nriConfiguration = '', blockio }) {
  const at = (name) => JSON.stringify(join(folder, name));
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  const nriPlugin = `
[plugins."io.containerd.nri.v1.nri"]
  disable = ${!nri}
  socket_path = ${at('run/nri/nri.sock')}
  plugin_path = ${at('nri-plugins')}
  plugin_config_path = ${at('nri-config')}
  plugin_request_timeout = ${JSON.stringify(nriTimeout)}
${nriConfiguration}
`;
  const blockioPlugin = `
[plugins."io.containerd.service.v1.tasks-service"]
  blockio_config_file = ${at('blockio.yaml')}
`;
  return `version = 2
root = ${at('root')}
state = ${at('run/containerd')}
[grpc]
  address = ${at('run/containerd/containerd.sock')}
[plugins."io.containerd.internal.v1.opt"]
  path = ${at('opt')}
${nri === undefined ? '' : nriPlugin}
${blockio === undefined ? '' : blockioPlugin}
[${cri}]
  sandbox_image = ${JSON.stringify(IMAGE)}
  disable_apparmor = true
  restrict_oom_score_adj = true
  enable_cdi = true
  cdi_spec_dirs = [${at('cdi')}]
  netns_mounts_under_state_dir = true
[${cri}.cni]
  bin_dir = ${at('cni')}
  conf_dir = ${at('cni')}
[${cri}.containerd]
  snapshotter = "native"
  default_runtime_name = "runc"
[${cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[${cri}.containerd.runtimes.runc.options]
  BinaryName = ${JSON.stringify(runc)}
  Root = ${at('runc')}
  SystemdCgroup = ${bySystemd}
`;
}

export class Containerd {
  /** The folder of all its files, also for files that tests mount into containers. */
  folder;
  socketPath;
  /** Undefined if NRI is off. */
  nriSocketPath;
  /** For `cgroup_parent` of pods: the group in each hierarchy that ends with the runtime. */
  cgroupParent;
  #group;
  #programs;
  #keeper;
  #child;

  /**
   * `release`: such as `1.7`; 1.6 has no NRI. `nri`: whether it is on. `nriTimeout`: how long it
   * waits for a plugin's answer. `bySystemd`: it has systemd make cgroups, in slices of the
   * machine's, and `cgroupParent` is one. `nriConfiguration`: more lines of TOML after NRI's.
   * `blockio`: its classes of block devices, in YAML.
   */
  static async start(options = {}) {
    const { release = RELEASE, nri = release !== '1.6', nriTimeout = '2s', bySystemd = false } = options;
    const { nriConfiguration, blockio } = options;
    const components = prepareComponents(release);
    const containerd = new Containerd(components, { nri, nriTimeout, bySystemd, nriConfiguration, blockio });
    await containerd.#keep(bySystemd ? ['/run/systemd'] : []);
    try {
      await containerd.start();
      containerd.importImage(components.image);
    } catch (error) {
      await containerd.close();
      throw error;
    }
    return containerd;
  }

  constructor({ release, containerd, runc }, { nri, nriTimeout, bySystemd, nriConfiguration, blockio }) {
    this.folder = mkdtempSync(join(tmpdir(), 'numalign-containerd-'));
    this.socketPath = join(this.folder, 'run/containerd/containerd.sock');
    this.nriSocketPath = nri ? join(this.folder, 'run/nri/nri.sock') : undefined;
    this.#group = `/${basename(this.folder)}`;
    this.cgroupParent = bySystemd ? 'numalign_test.slice' : this.#group;
    this.#programs = { folder: containerd, path: [containerd, dirname(runc)].join(':') };
    for (const name of ['nri-plugins', 'nri-config', 'opt', 'cni']) mkdirSync(join(this.folder, name));
    const hasNri = release === '1.6' ? undefined : nri;
    if (blockio !== undefined) writeFileSync(join(this.folder, 'blockio.yaml'), blockio);
    writeFileSync(
      join(this.folder, 'containerd.toml'),
      configuration(this.folder, { runc, nri: hasNri, nriTimeout, bySystemd, nriConfiguration, blockio }),
    );
  }

  /** Its version, such as `1.7.24`. */
  get version() {
    return containerdVersion(this.#programs.folder);
  }

  /** Imports an OCI archive; its image has the name that the archive says. */
  importImage(archive) {
    this.#run('ctr', [
      ...['-a', this.socketPath, '-n', 'k8s.io', 'images', 'import'],
      // Newer ones would let the daemon unpack it, which knows a snapshotter per platform.
      ...(this.version.startsWith('2.') ? ['--local'] : []),
      ...['--snapshotter', 'native', archive],
    ]);
  }

  /** What it has logged. */
  get log() {
    return readFileSync(join(this.folder, 'containerd.log'), 'utf8');
  }

  get pid() {
    return this.#child?.pid;
  }

  /** The process that removes everything at the end. */
  get keeperPid() {
    return this.#keeper?.pid;
  }

  /** Starts it with its earlier state; returns when it answers. */
  async start() {
    const log = openSync(join(this.folder, 'containerd.log'), 'a');
    const [program, args] = this.#inside('containerd', ['-c', join(this.folder, 'containerd.toml')]);
    // The shell is in the cgroups before there is a containerd, whose shims inherit them.
    const joinGroups = makeGroups(this.#group).map((group) => `echo $$ > ${group}/cgroup.procs`);
    const script = [...joinGroups, 'exec "$0" "$@"'].join('\n');
    this.#child = spawn('sh', ['-ec', script, program, ...args], {
      env: { ...process.env, PATH: `${this.#programs.path}:${process.env.PATH}` },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    await this.#answer();
  }

  /** Ends it and waits for its end. Its containers continue. */
  async kill(signal = 'SIGKILL') {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const end = once(child, 'exit');
    child.kill(signal);
    await end;
  }

  async restart(signal = 'SIGTERM') {
    await this.kill(signal);
    await this.start();
  }

  /** Ends it and its containers, and removes all their files. */
  async close() {
    const keeper = this.#keeper;
    if (keeper === undefined) return;
    this.#keeper = undefined;
    const end = once(keeper, 'exit');
    keeper.stdin.end();
    const [code] = await end;
    if (code !== 0) throw new Error(`the keeper of ${this.folder} ended with ${code}`);
  }

  async #keep(paths) {
    const args = [
      '--mount',
      '--propagation',
      'slave',
      process.execPath,
      KEEPER,
      this.folder,
      this.#group,
      ...paths,
    ];
    // In a session of its own: a signal for the tests' group must not end it before them.
    this.#keeper = spawn('unshare', args, { detached: true, stdio: ['pipe', 'pipe', 'inherit'] });
    const [ready] = await Promise.race([once(this.#keeper.stdout, 'data'), once(this.#keeper, 'exit')]);
    if (`${ready}` !== 'ready\n') throw new Error(`the keeper of ${this.folder} did not start`);
  }

  // A program of containerd's in the keeper's mount namespace.
  #inside(name, args) {
    const namespace = `--mount=/proc/${this.#keeper.pid}/ns/mnt`;
    return ['nsenter', [namespace, join(this.#programs.folder, name), ...args]];
  }

  #run(name, args) {
    return run(...this.#inside(name, args));
  }

  async #answer() {
    const deadline = Date.now() + START_MS;
    const child = this.#child;
    const client = new RuntimeClient({ socketPath: this.socketPath, timeoutMs: 1000 });
    try {
      for (;;) {
        const version = await client.call('Version').catch((error) => error);
        if (!(version instanceof Error)) return;
        if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline)
          throw new Error(`containerd does not answer (${version.message}):\n${this.log.slice(-4000)}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    } finally {
      client.close();
    }
  }
}
