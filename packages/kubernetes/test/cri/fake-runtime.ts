// FakeRuntime: a runtime in this process, with answers from the test.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';
import { serviceDefinition } from '../../lib/grpc/service.js';
import { type Message, Schema } from '../../lib/protobuf/schema.js';

/** By the name of the call. One that throws `{ code, details }` is refused so. */
export type Answers = Record<string, (request: Message) => Message | Promise<Message>>;

const service = serviceDefinition(new Schema('cri'), 'runtime.v1.RuntimeService');

/** A folder that is removed when the test ends. */
export function temporaryFolder(onTestFinished: (end: () => void) => void): string {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-cri-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export class FakeRuntime {
  readonly requests: [string, Message][] = [];
  readonly #server = new Server();

  constructor(answers: Answers, definition = service) {
    const handlers = Object.keys(definition).map((name) => {
      const handle = async (call: ServerUnaryCall<Message, Message>, reply: sendUnaryData<Message>) => {
        this.requests.push([name, call.request]);
        const answer = answers[name];
        if (!answer) return reply({ code: status.UNIMPLEMENTED, details: `unknown method ${name}` });
        try {
          reply(null, await answer(call.request));
        } catch (error) {
          reply(error as Error);
        }
      };
      return [name, handle] as const;
    });
    this.#server.addService(definition, Object.fromEntries(handlers));
  }

  listen(socketPath: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(`unix://${socketPath}`, ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      );
    });
  }

  close(): void {
    this.#server.forceShutdown();
  }
}
