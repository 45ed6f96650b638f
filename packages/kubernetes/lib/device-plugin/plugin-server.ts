// PluginServer: the device plugin API (v1beta1) on its own socket.
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Server, ServerUnaryCall, ServiceError, sendUnaryData, status } from '@grpc/grpc-js';
import type { NodeError } from '../base/errors.js';
import { grpc } from '../base/late-packages.js';
import { serviceDefinition } from '../grpc/service.js';
import { checkSocketPath, listen, removeDead } from '../grpc/sockets.js';
import type { Message, Schema } from '../protobuf/schema.js';
import type { DeviceStream } from './device-list.js';

/** The handlers of the API; the kubelet gets the errors that they throw. */
export interface PluginAnswers {
  listAndWatch(stream: DeviceStream): void;
  preferredAllocation(request: Message): Message;
  allocate(request: Message): Promise<Message>;
}

const STATUS_OF: Readonly<Record<string, keyof typeof status>> = {
  ERR_UNKNOWN_DEVICE: 'NOT_FOUND',
  ERR_DEVICE_REQUEST: 'INVALID_ARGUMENT',
  ERR_DEVICE_OFFLINE: 'FAILED_PRECONDITION',
  ERR_DEVICE_HELD: 'RESOURCE_EXHAUSTED',
};

function serviceError(error: unknown): Pick<ServiceError, 'code' | 'details'> {
  const { code, message } = error as NodeError;
  const details = code === undefined ? message : `${code}: ${message}`;
  return { code: grpc().status[STATUS_OF[code] ?? 'INTERNAL'], details };
}

type Answer = (request: Message) => Message | Promise<Message>;

function unary(answer: Answer) {
  return (call: ServerUnaryCall<Message, Message>, reply: sendUnaryData<Message>) => {
    new Promise<Message>((resolve) => resolve(answer(call.request))).then(
      (message) => reply(null, message),
      (error) => reply(serviceError(error)),
    );
  };
}

export class PluginServer {
  readonly #path: string;
  readonly #server: Server;
  /** The name of the socket in its folder. */
  readonly endpoint: string;

  private constructor(server: Server, folder: string, endpoint: string) {
    this.#server = server;
    this.endpoint = endpoint;
    this.#path = join(folder, endpoint);
  }

  /**
   * Serves on a new socket `PREFIX-….sock`, and removes those of ended processes.
   * @throws ERR_SOCKET_PATH if the path is too long for Linux; what bind(2) refuses
   */
  static async listen(
    folder: string,
    prefix: string,
    schema: Schema,
    answers: PluginAnswers,
  ): Promise<PluginServer> {
    const endpoint = `${prefix}-${randomBytes(4).toString('hex')}.sock`;
    const path = join(folder, endpoint);
    checkSocketPath(path);
    await removeDead(folder, (name) => name.startsWith(`${prefix}-`) && name.endsWith('.sock'));
    const server = new (grpc().Server)();
    server.addService(serviceDefinition(schema, 'v1beta1.DevicePlugin'), {
      GetDevicePluginOptions: unary(() => ({
        pre_start_required: false,
        get_preferred_allocation_available: true,
      })),
      ListAndWatch: (stream: DeviceStream) => answers.listAndWatch(stream),
      GetPreferredAllocation: unary((request) => answers.preferredAllocation(request)),
      Allocate: unary((request) => answers.allocate(request)),
      PreStartContainer: unary(() => ({})),
    });
    await listen(server, path);
    return new PluginServer(server, folder, endpoint);
  }

  /** False once the kubelet has emptied the folder. */
  get isReachable(): boolean {
    return existsSync(this.#path);
  }

  /** Ends all calls, and removes the socket. */
  close(): void {
    this.#server.forceShutdown();
  }
}
