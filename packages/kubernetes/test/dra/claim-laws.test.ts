// needs: nothing
import { rmSync } from 'node:fs';
import fc from 'fast-check';
import { CpuSet, type Grant } from 'numalign';
import { expect, it } from 'vitest';
import { budget } from '../../../../test/support/budget.mjs';
import type { KubernetesObject } from '../../lib/api-server/resource.js';
import { claimOfGrant } from '../../lib/claims/claim-names.js';
import type { ContainerHandlers } from '../../lib/containers/container-handlers.js';
import { ClaimsAtServer } from '../../lib/dra/driver/claims-at-server.js';
import { CdiFiles, type ClaimRecord } from '../../lib/dra/preparation/cdi-files.js';
import type { ClaimManager } from '../../lib/dra/preparation/claim-grants.js';
import { Preparation } from '../../lib/dra/preparation/preparation.js';
import { NO_METRICS } from '../../lib/metrics/metrics.js';
import {
  type Container,
  ContainerState,
  type ContainerUpdate,
  type PodSandbox,
} from '../../lib/nri/messages.js';
import { NO_POLICY } from '../../lib/placement/container-policy.js';
import {
  allocated,
  type ClaimResult,
  configured,
  DRIVER,
  DraNode,
  environmentOf,
  nameOf,
} from './dra-node.js';

const CLAIMS = 4;
const PID = 1;

class Killed extends Error {}

/** The process: it ends at a step that changes something, before or after that. */
class Life {
  /** Half steps until the end. */
  left = Number.POSITIVE_INFINITY;

  #live(): void {
    if (this.left-- <= 0) throw new Killed();
  }

  async step<T>(work: () => Promise<T>): Promise<T> {
    this.#live();
    const result = await work();
    this.#live();
    return result;
  }

  instant(work: () => void): void {
    this.#live();
    work();
    this.#live();
  }
}

class MortalFiles extends CdiFiles {
  readonly #life: Life;

  constructor(life: Life, folder: string) {
    super(folder, DRIVER);
    this.#life = life;
  }

  override write(record: ClaimRecord): void {
    this.#life.instant(() => super.write(record));
  }

  override remove(claimUid: string): void {
    this.#life.instant(() => super.remove(claimUid));
  }
}

interface Running {
  readonly pod: PodSandbox;
  readonly container: Container;
  readonly claim: number;
  isAlive: boolean;
}

/** A node, and all that calls it. */
class World {
  readonly running: Running[] = [];
  readonly outside: Grant[] = [];
  readonly allocations = new Map<number, KubernetesObject>();
  life = new Life();
  handlers!: ContainerHandlers;
  preparation!: Preparation;

  constructor(readonly dra: DraNode) {
    this.handlers = dra.handlers;
    this.#prepareWith();
  }

  get manager() {
    return this.dra.node.manager;
  }

  #prepareWith(): void {
    const life = new Life();
    this.life = life;
    const { manager } = this;
    const mortal = new Proxy(manager, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        const isStep = ['admit', 'adopt', 'release'].includes(String(name));
        return (...args: unknown[]) =>
          isStep ? life.step(() => value.apply(target, args)) : value.apply(target, args);
      },
    });
    this.preparation = new Preparation({
      manager: mortal as ClaimManager,
      policy: () => NO_POLICY,
      driver: DRIVER,
      cdiFiles: new MortalFiles(life, this.dra.cdiFolder),
      claims: new ClaimsAtServer(this.dra.claims),
      tellStatus: () => {},
      containers: {
        userOf: (grants) => this.handlers.claimUser(grants),
        condition: { part: 'nri', isMet: true, isVital: true, text: '' },
      },
      log: () => {},
      ...{ metrics: NO_METRICS, recordEvent: () => {} },
    });
    this.dra.findClaim = (uid) => this.preparation.find(uid);
  }

  /** What a scheduler decides, which knows of claims alone. */
  allocate(i: number, choice: number): KubernetesObject {
    const found = this.allocations.get(i);
    if (found) return found;
    const node = choice % 2;
    const results: ClaimResult[][] = [
      [{ device: `node-${node}`, capacity: { cpu: String(1 + (choice % 3)) } }],
      [{ device: `node-${node}`, capacity: { cpu: '1', memory: '1Gi' } }],
      [{ device: `node-${node}`, capacity: { memory: '2Gi' } }],
      [
        { request: 'a', device: 'node-0', capacity: { cpu: '1' } },
        { request: 'b', device: 'node-1', capacity: { cpu: '2' } },
      ],
      [{ device: `cpu-${1 + (choice % 7)}` }, { device: `cpu-${1 + ((choice + 3) % 7)}` }],
      [{ device: `node-${node}`, capacity: { cpu: String(2 + (choice % 2)) } }],
    ];
    const kind = choice % results.length;
    const claim = allocated(`c${i}`, results[kind]!, {
      pods: [`pod${i}`],
      ...(kind === results.length - 1 && mixed(1 + (choice % 2))),
    });
    this.allocations.set(i, claim);
    this.dra.claims.put(claim);
    return claim;
  }

  claimCpus(i: number): CpuSet {
    return this.#grantsOf(i).reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);
  }

  #grantsOf(i: number) {
    return this.manager
      .grants()
      .filter(({ uid }) => claimOfGrant(uid) === `c${i}-uid`)
      .sort((a, b) => a.uid.localeCompare(b.uid));
  }

  async prepare(i: number, choice: number): Promise<void> {
    const claim = this.allocate(i, choice);
    const before = this.#grantsOf(i).map(({ uid, cpus }) => `${uid} ${cpus}`);
    const wasPrepared = this.preparation.find(nameOf(claim).uid) !== undefined;
    try {
      await this.preparation.prepare(nameOf(claim));
      const record = this.preparation.find(nameOf(claim).uid)!;
      expect(this.#grantsOf(i).map(({ uid }) => uid)).toEqual(record.grants);
      if (wasPrepared) expect(this.#grantsOf(i).map(({ uid, cpus }) => `${uid} ${cpus}`)).toEqual(before);
    } catch (error) {
      if (error instanceof Killed || this.life.left <= 0) return;
      expect(error).toMatchObject({ code: expect.stringMatching(/^ERR_/) });
      if (!wasPrepared) expect(this.#grantsOf(i)).toEqual([]);
    }
  }

  async unprepare(i: number): Promise<void> {
    const uid = `c${i}-uid`;
    const name = { namespace: 'default', name: `c${i}`, uid };
    const users = this.running.filter(({ claim, isAlive }) => claim === i && isAlive);
    try {
      await this.preparation.unprepare(name);
    } catch (error) {
      if (error instanceof Killed || this.life.left <= 0) return;
      expect(error).toMatchObject({ code: 'ERR_CLAIM_IN_USE' });
      expect(users).not.toEqual([]);
      return;
    }
    expect(users).toEqual([]);
    this.expectNothing(i);
  }

  /** The kubelet has lost its record, and the claim is deleted. */
  async delete(i: number): Promise<void> {
    this.dra.claims.claims.delete(`c${i}`);
    await this.preparation.sweep();
    if (this.running.some(({ claim, isAlive }) => claim === i && isAlive)) return;
    this.expectNothing(i);
  }

  expectNothing(i: number): void {
    expect([this.#grantsOf(i), this.preparation.find(`c${i}-uid`)]).toEqual([[], undefined]);
    this.allocations.delete(i);
  }

  /** A container of the claim's pod, or of another one, that a runtime creates and starts. */
  async create(i: number, podName: string): Promise<void> {
    const record = this.preparation.find(`c${i}-uid`);
    if (!record) return;
    const env = environmentOf(this.dra.cdiFolder, record.grants);
    const { pod, container, cgroupsPath } = this.dra.container(podName, 'main', env);
    const held = this.claimCpus(i);
    let cpus: string;
    try {
      const { adjust, updates } = await this.handlers.createContainer(pod, container);
      this.#carryOut(updates);
      cpus = adjust.linux!.resources!.cpu!.cpus!;
    } catch (error) {
      expect(podName).not.toBe(`pod${i}`);
      expect(error).toMatchObject({ code: 'ERR_CLAIM_SHARED' });
      return;
    }
    expect(podName).toBe(`pod${i}`);
    if (!held.isEmpty) expect(cpus).toBe(`${held}`);
    this.dra.node.makeCgroup(cgroupsPath, cpus, [PID]);
    await this.handlers.startContainer(pod, container);
    this.running.push({ pod, container, claim: i, isAlive: true });
  }

  #carryOut(updates: readonly ContainerUpdate[]): void {
    for (const { container_id, linux } of updates) {
      const found = this.running.find(({ container }) => container.id === container_id);
      const { cpus } = linux.resources.cpu ?? {};
      if (found && cpus) this.dra.node.makeCgroup(found.container.linux!.cgroups_path, cpus);
    }
  }

  /** `isTold`: whether the runtime reports the end at once. */
  async end(choice: number, isTold: boolean): Promise<void> {
    const found = this.running[choice % Math.max(1, this.running.length)];
    if (!found) return;
    found.isAlive = false;
    this.dra.node.endCgroup(found.container.linux!.cgroups_path);
    if (!isTold) return;
    this.running.splice(this.running.indexOf(found), 1);
    this.#carryOut(await this.handlers.stopContainer(found.pod, found.container));
    await this.handlers.removeContainer(found.pod, found.container);
  }

  async restart(): Promise<void> {
    this.handlers.close();
    this.handlers = this.dra.node.restart();
    this.#prepareWith();
    const living = this.running.filter(({ isAlive }) => isAlive);
    this.running.splice(0, this.running.length, ...living);
    const pods = new Map(living.map(({ pod }) => [pod.id, pod]));
    const containers = living.map(({ container }) => ({
      ...container,
      state: ContainerState.RUNNING,
      linux: withCpus(container, this.dra.node.cpusOf(container.linux!.cgroups_path)),
    }));
    this.#carryOut(await this.handlers.synchronize([...pods.values()], containers));
  }

  /** Containers with memory alone leave granted CPUs when the record shows them. */
  async #untilShared(all: CpuSet): Promise<void> {
    const others = this.running.filter(({ isAlive, claim }) => isAlive && this.claimCpus(claim).isEmpty);
    const cpus = () =>
      others.map(({ container }) => CpuSet.parse(this.dra.node.cpusOf(container.linux!.cgroups_path)));
    const isMet = () => cpus().every((each) => !each.intersects(all));
    if (!isMet()) await expect.poll(isMet, { interval: 2 }).toBe(true);
  }

  async check(): Promise<void> {
    const grants = this.manager.grants();
    const all = grants.reduce((sum, { cpus }) => sum.union(cpus), CpuSet.EMPTY);
    expect(grants.reduce((sum, { cpus }) => sum + cpus.size, 0)).toBe(all.size);
    expect(all.intersects(this.manager.freeCpus())).toBe(false);
    expect(`${all.union(this.manager.freeCpus())}`).toBe('1-7');
    await this.#untilShared(all);
    const places = this.running
      .filter(({ isAlive }) => isAlive)
      .map(({ claim, container }) => ({
        claim,
        held: this.claimCpus(claim),
        cpus: CpuSet.parse(this.dra.node.cpusOf(container.linux!.cgroups_path)),
      }));
    for (const { claim, cpus, held } of places) {
      if (!held.isEmpty) expect(`${cpus}`).toBe(`${held}`);
      for (const other of places)
        if (other.claim !== claim && !other.held.isEmpty) expect(cpus.intersects(other.cpus)).toBe(false);
    }
  }

  /** Everything ends: nothing may be left. */
  async finish(): Promise<void> {
    await this.restart();
    while (this.running.length > 0) await this.end(0, true);
    for (let i = 0; i < CLAIMS; i++) await this.unprepare(i);
    for (const grant of this.outside.splice(0)) await grant.release();
    expect(this.manager.grants()).toEqual([]);
    expect(`${this.manager.freeCpus()}`).toBe('1-7');
    expect(new CdiFiles(this.dra.cdiFolder, DRIVER).claimUids).toEqual([]);
  }

  /** Whatever has failed, the next one begins with nothing. */
  async clear(): Promise<void> {
    this.handlers.close();
    for (const { uid } of this.manager.grants()) await this.manager.release(uid);
    rmSync(this.dra.cdiFolder, { recursive: true, force: true });
    this.dra.handlers = this.dra.node.restart();
  }
}

/** With half a CPU more, which is in the shared pool. */
const mixed = (cpus: number) => ({
  requests: [{ name: 'cpus', exactly: { capacity: { requests: { cpu: `${cpus}.5` } } } }],
  config: [configured({ mixed: true, movable: true })],
});

const withCpus = ({ linux }: Container, cpus: string) => ({
  ...linux!,
  resources: { ...linux!.resources!, cpu: { ...linux!.resources!.cpu!, cpus } },
});

const STEPS: Readonly<Record<string, (world: World, i: number, choice: number) => Promise<unknown>>> = {
  prepare: (world, i, choice) => world.prepare(i, choice),
  'prepare twice': (world, i, choice) => Promise.all([world.prepare(i, choice), world.prepare(i, choice)]),
  'prepare all': (world, _, choice) =>
    Promise.all(Array.from({ length: CLAIMS }, (_, i) => world.prepare(i, choice + i))),
  unprepare: (world, i) => world.unprepare(i),
  'prepare, and unprepare before it has ended': async (world, i, choice) => {
    const claim = world.allocate(i, choice);
    const name = nameOf(claim);
    const [, end] = await Promise.allSettled([
      world.preparation.prepare(name),
      world.preparation.unprepare(name),
    ]);
    if (end.status === 'fulfilled') world.expectNothing(i);
  },
  create: (world, i) => world.create(i, `pod${i}`),
  'create another': (world, i) => world.create(i, 'stranger'),
  end: (world, _, choice) => world.end(choice, true),
  kill: (world, _, choice) => world.end(choice, false),
  restart: (world) => world.restart(),
  'the claim is deleted': (world, i) => world.delete(i),
  'end the process while it prepares': async (world, i, choice) => {
    world.life.left = choice % 9;
    await world.prepare(i, choice);
    await world.restart();
  },
  'end the process while it unprepares': async (world, i, choice) => {
    world.life.left = choice % 7;
    await world.unprepare(i);
    await world.restart();
  },
  outside: async (world, _, choice) => {
    const cpu = 1 + (choice % 3);
    const grant = await world.manager.acquire({ cpu, owner: 'persistent' }).catch(() => undefined);
    if (grant) world.outside.push(grant);
  },
  'outside ends': async (world) => world.outside.pop()?.release(),
};

const steps = fc.array(
  fc.record({
    name: fc.constantFrom(...Object.keys(STEPS)),
    claim: fc.nat(CLAIMS - 1),
    choice: fc.nat(1000),
  }),
  { minLength: 1, maxLength: 16 },
);

it('No CPU is owned twice or lost, whatever is asked, and whenever processes end', async () => {
  const dra = await DraNode.open();
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const world = new World(dra);
      try {
        for (const { name, claim, choice } of list) {
          await STEPS[name]!(world, claim, choice);
          await world.check();
        }
        await world.finish();
      } finally {
        await world.clear();
      }
    }),
    { numRuns: budget({ all: 10_000, usual: 10 }), endOnFailure: true },
  );
}, 3_600_000);
