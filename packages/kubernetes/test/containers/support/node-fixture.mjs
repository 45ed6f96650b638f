// A runtime with a numalign-node beside it, for the tests of one file; everything that a test
// starts ends with it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DraDriver, NumalignNode } from '@numalign/kubernetes';
import { CpuSet, openManager } from 'numalign';
import { Containerd } from './containerd.mjs';
import { PlayedPlugin } from './played-plugin.mjs';
import { PluginProcess } from './plugin-process.mjs';
import { Pods } from './pods.mjs';
import { allowedOf } from './process-view.mjs';

const MB = 1 << 20;
const PERIOD = 100_000;

/** Resources of a Guaranteed container, as a kubelet sends them. */
export const guaranteed = (cpus, memoryMB = 64) => ({
  cpu_period: PERIOD,
  cpu_quota: cpus * PERIOD,
  cpu_shares: cpus * 1024,
  memory_limit_in_bytes: memoryMB * MB,
});

/** The resources with which a container gets its own CPUs. */
export const EXCLUSIVE = { resources: guaranteed(1) };

/** The CPUs of the test processes: the whole machine's. */
export const ALL = allowedOf(process.pid);

/** The machine's CPUs without these, as a list. */
export const allCpusBut = (cpus) => String(CpuSet.parse(ALL.cpus).difference(CpuSet.parse(cpus)));

const PATIENCE_MS = 15_000;

/** Polls a value that causes no event, such as a cgroup's file. Returns the first true result. */
export async function until(what, look, patienceMs = PATIENCE_MS) {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`not within ${patienceMs} ms: ${what}`);
    await sleep(5);
  }
}

/**
 * The options that a test needs on the whole machine: no kubelet's files, no member, short waits.
 */
export const managerOptions = (stateDir, options) => ({
  stateDir,
  lockTimeoutMs: 1000,
  sharedMember: false,
  policy: 'restricted',
  ...options,
});

export class NodeFixture {
  runtime;
  /** Those of one test. */
  pods;
  /** Those of all tests. */
  lastingPods;
  stateDir;
  /** The log of numalign-node in this test: `level: message`. */
  lines = [];
  #closing = [];

  /** `options`: of Containerd.start. */
  async open(options) {
    this.runtime = await Containerd.start(options);
    this.lastingPods = new Pods(this.runtime);
  }

  /** Before each test. */
  begin() {
    this.lines = [];
    this.stateDir = mkdtempSync(join(tmpdir(), 'numalign-state-'));
    this.pods = new Pods(this.runtime);
  }

  /** After each test. */
  async end() {
    await this.pods?.close();
    for (const close of this.#closing.splice(0).reverse()) await close();
    if (this.stateDir) rmSync(this.stateDir, { recursive: true });
  }

  async close() {
    await this.lastingPods?.close();
    await this.runtime?.close();
  }

  /** Another manager of the same state. */
  async openManager(options) {
    const manager = await openManager(managerOptions(this.stateDir, options));
    this.#closing.push(() => manager.close());
    return manager;
  }

  /** A node in this process: `{ node, manager }`, synchronized. */
  async startNode({ name, slices, findManifest, findClaim, ...options } = {}) {
    const manager = await this.openManager(options);
    const log = (level, message) => this.lines.push(`${level}: ${message}`);
    const { nriSocketPath: nriSocket, socketPath: runtimeSocket } = this.runtime;
    const given = { name, slices, findManifest, findClaim };
    const node = new NumalignNode({ manager, nriSocket, runtimeSocket, log, ...given });
    await node.start();
    this.#closing.push(() => node.close());
    return { node, manager };
  }

  /** A DRA driver beside the node, with a kubelet that is played; `claims`: those of the API server. */
  async startDriver(claims, options = {}) {
    let driver;
    const { node, manager } = await this.startNode({
      findClaim: (uid) => driver?.findClaim(uid),
      ...options,
    });
    driver = new DraDriver({
      manager,
      containers: {
        userOf: (grants) => node.claimUser(grants),
        get condition() {
          return node.condition;
        },
      },
      kubeletFolder: join(this.stateDir, 'kubelet'),
      cdiFolder: join(this.runtime.folder, 'cdi'),
      apiServer: { get: async (_, name) => claims.get(name) },
      log: (level, message) => this.lines.push(`${level}: ${message}`),
    });
    await driver.start();
    const plugin = new PlayedPlugin(join(this.stateDir, 'kubelet/plugins/numalign.io/dra.sock'));
    const close = async () => {
      plugin.close();
      await driver.close();
    };
    this.#closing.push(close);
    return { driver, plugin, node, manager };
  }

  /** A node in a process of its own, synchronized. `death`: see plugin.mjs. */
  async startProcess({ death, name, ...options } = {}) {
    const plugin = new PluginProcess({
      nriSocket: this.runtime.nriSocketPath,
      runtimeSocket: this.runtime.socketPath,
      manager: managerOptions(this.stateDir, options),
      ...{ death, name },
    });
    this.#closing.push(() => plugin.kill());
    await plugin.reach('synchronize');
    return plugin;
  }
}

/** The fixture of the current suite. `options`: of Containerd.start. */
export function useNodeFixture(options) {
  const fixture = new NodeFixture();
  before(() => fixture.open(options));
  after(() => fixture.close());
  beforeEach(() => fixture.begin());
  afterEach(() => fixture.end());
  return fixture;
}
