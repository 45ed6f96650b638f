// PluginServer: the device plugin API (v1beta1) on its own socket.
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceError,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { NodeError } from '../base/errors.js';
import { serviceDefinition } from '../grpc/service.js';
import type { Message, Schema } from '../protobuf/schema.js';
import type { DeviceStream } from './device-list.js';

/** The handlers of the API; the kubelet gets the errors that they throw. */
export interface PluginAnswers {
  listAndWatch(stream: DeviceStream): void;
  preferredAllocation(request: Message): Message;
  allocate(request: Message): Promise<Message>;
}

// sockaddr_un(7), with its final zero.
const LONGEST_PATH = 107;

const STATUS_OF: Readonly<Record<string, status>> = {
  ERR_UNKNOWN_DEVICE: status.NOT_FOUND,
  ERR_DEVICE_REQUEST: status.INVALID_ARGUMENT,
  ERR_DEVICE_OFFLINE: status.FAILED_PRECONDITION,
  ERR_DEVICE_HELD: status.RESOURCE_EXHAUSTED,
};

function serviceError(error: unknown): Pick<ServiceError, 'code' | 'details'> {
  const { code, message } = error as NodeError;
  const details = code === undefined ? message : `${code}: ${message}`;
  return { code: STATUS_OF[code] ?? status.INTERNAL, details };
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

/** Whether a process listens on a socket; a process that has ended leaves its file. */
function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
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
    if (Buffer.byteLength(path) > LONGEST_PATH) {
      throw new NodeError('ERR_SOCKET_PATH', `the path of the plugin's socket is too long: ${path}`, {
        value: path,
        valid: `at most ${LONGEST_PATH} bytes`,
      });
    }
    for (const name of readdirSync(folder)) {
      const isOurs = name.startsWith(`${prefix}-`) && name.endsWith('.sock');
      if (isOurs && !(await isServed(join(folder, name)))) rmSync(join(folder, name), { force: true });
    }
    const server = new Server();
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
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(`unix://${path}`, ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      ),
    );
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
