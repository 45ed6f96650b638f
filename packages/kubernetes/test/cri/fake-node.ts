// FakeNode: containers that are the test's own cgroups, and a runtime in this process that sets
// their cpusets.
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { readCpuset } from '../../lib/cgroups/cpuset.js';
import { ContainerRuntime, type RunningContainer } from '../../lib/cri/container-runtime.js';
import type { Message } from '../../lib/protobuf/schema.js';
import { ContainerCgroup } from './container-cgroup.js';
import { FakeRuntime, temporaryFolder } from './fake-runtime.js';

const RUNNING = 1;

export class FakeNode {
  readonly folder = temporaryFolder(onTestFinished);
  readonly runtime: ContainerRuntime;
  /** Called before a cpuset is set; its error is the runtime's refusal. */
  onUpdate: (container: ContainerCgroup, cpus: string) => unknown = () => {};
  readonly #containers: ContainerCgroup[] = [];
  readonly #fake: FakeRuntime;

  /** With containers `c0`, `c1`, … of pods `p0`, … with the uids `u0`, … */
  static async start(count: number): Promise<FakeNode> {
    const node = new FakeNode(count);
    await node.#fake.listen(node.runtime.socketPath);
    return node;
  }

  private constructor(count: number) {
    for (let i = 0; i < count; i++) {
      const container = new ContainerCgroup();
      onTestFinished(() => container.end());
      this.#containers.push(container);
    }
    this.#fake = new FakeRuntime({
      ListContainers: () => ({ containers: this.#containers.map((each, i) => this.#listed(each, i)) }),
      ListPodSandbox: () => ({
        items: this.#containers.map((_, i) => ({
          id: `s${i}`,
          metadata: { name: `p${i}`, uid: `u${i}`, namespace: 'default' },
        })),
      }),
      ContainerStatus: ({ container_id: id }) => ({
        info: { info: JSON.stringify({ pid: this.#containers.find((each) => each.id === id)!.pid }) },
      }),
      UpdateContainerResources: (request) => this.#update(request),
    });
    this.runtime = new ContainerRuntime({ socketPath: join(this.folder, 'runtime.sock') });
    onTestFinished(() => {
      this.runtime.close();
      this.#fake.close();
    });
  }

  container(i: number): ContainerCgroup {
    return this.#containers[i]!;
  }

  find(i: number): Promise<RunningContainer> {
    return this.runtime.find(this.container(i).id);
  }

  /** The CPUs that each container may use. */
  cpus(): string[] {
    return this.#containers.map(({ folder }) => `${readCpuset(folder).effectiveCpus}`);
  }

  /** The number of cpuset changes. */
  get updates(): number {
    return this.#fake.requests.filter(([name]) => name === 'UpdateContainerResources').length;
  }

  #listed(each: ContainerCgroup, i: number): Message {
    return { id: each.id, pod_sandbox_id: `s${i}`, metadata: { name: `c${i}` }, state: RUNNING };
  }

  async #update({ container_id: id, linux }: Message): Promise<Message> {
    const container = this.#containers.find((each) => each.id === id)!;
    if ((await this.onUpdate(container, linux.cpuset_cpus)) === 'ignore') return {};
    if (linux.cpuset_cpus !== '') container.write('cpuset.cpus', linux.cpuset_cpus);
    if (linux.cpuset_mems !== '') container.write('cpuset.mems', linux.cpuset_mems);
    return {};
  }
}
