// A kubelet's folder with its sockets and files, for tests.
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Server, ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js';
import { CpuSet } from 'numalign';
import { CPU_MANAGER_STATE, formatCpuManagerState } from 'numalign/kubelet';
import { type Message, Schema } from '../../lib/protobuf/schema.js';
import { serve } from '../support/grpc-server.js';

type Answer = (request: Message) => Message | Promise<Message>;

export class KubeletFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'numalign-kubelet-'));
  readonly deviceFolder = join(this.path, 'device-plugins');
  readonly socket = join(this.path, 'pod-resources/kubelet.sock');
  /** The number of requests for its list. */
  lists = 0;
  #server: Server | undefined;

  constructor() {
    for (const name of ['device-plugins', 'pod-resources']) mkdirSync(join(this.path, name));
  }

  get options() {
    return { socket: this.socket, stateFolder: this.path, deviceFolder: this.deviceFolder };
  }

  /** Serves PodResources; a method that is not among the answers is one that the kubelet lacks. */
  async answer(answers: Readonly<Record<string, Answer>>): Promise<void> {
    const methods = Object.entries(answers).map(([name, answer]) => [
      name,
      (call: ServerUnaryCall<Message, Message>, reply: sendUnaryData<Message>) => {
        if (name === 'List') this.lists++;
        Promise.resolve(call.request)
          .then(answer)
          .then(
            (message) => reply(null, message),
            (error) => reply(error),
          );
      },
    ]);
    const schema = new Schema('podresources');
    this.#server = await serve(this.socket, schema, 'v1.PodResourcesLister', Object.fromEntries(methods));
  }

  /** Lists these pods. */
  list(pods: readonly Message[], more: Readonly<Record<string, Answer>> = {}): Promise<void> {
    return this.answer({ List: () => ({ pod_resources: pods }), ...more });
  }

  /** The socket's file stays if the kubelet is killed. */
  kill(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
    writeFileSync(this.socket, '');
  }

  /** Writes a file like the kubelet. */
  write(name: string, text: string, folder = this.path): void {
    writeFileSync(join(folder, `.${name}123`), text);
    renameSync(join(folder, `.${name}123`), join(folder, name));
  }

  /** `given`: CPUs by uid and container; `shared`: the shared pool. */
  writeCpus(shared: string, given: Readonly<Record<string, Readonly<Record<string, string>>>>): void {
    const entries = Object.entries(given).map(([uid, containers]): [string, Map<string, CpuSet>] => [
      uid,
      new Map(Object.entries(containers).map(([name, cpus]) => [name, CpuSet.parse(cpus)])),
    ]);
    const defaultCpuSet = CpuSet.parse(shared);
    const text = formatCpuManagerState({ policyName: 'static', defaultCpuSet, entries: new Map(entries) });
    this.write(CPU_MANAGER_STATE, text);
  }

  remove(): void {
    this.#server?.forceShutdown();
    rmSync(this.path, { recursive: true, force: true });
  }
}
