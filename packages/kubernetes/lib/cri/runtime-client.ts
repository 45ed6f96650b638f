// RuntimeClient: calls of the Container Runtime Interface, v1, over a runtime's socket.
import { accessSync, constants, statSync } from 'node:fs';
import type { Client, ServiceError } from '@grpc/grpc-js';
import { NodeError } from '../base/errors.js';
import { grpc } from '../base/late-packages.js';
import { serviceDefinition } from '../grpc/service.js';
import { CONFLICT_REMEDY, conflictIn } from '../nri/plugin-conflict.js';
import { type Message, Schema } from '../protobuf/schema.js';

export interface RuntimeClientOptions {
  /** The absolute path of the runtime's Unix socket, with or without `unix://`. */
  readonly socketPath: string;
  /** A call without an answer by then fails. Default: 10,000. */
  readonly timeoutMs?: number;
}

/** A call may take this much longer than the wait that it requests of the runtime. */
const TIMEOUT_MS = 10_000;

type Call = (
  request: Message,
  options: { deadline: number },
  done: (error: ServiceError | null, response: Message) => void,
) => void;

/**
 * The runtime behind a socket. It connects at the first call, and again after the connection is
 * lost.
 */
export class RuntimeClient {
  readonly socketPath: string;
  readonly timeoutMs: number;
  readonly #client: Client;

  /** @throws ERR_INVALID_OPTION */
  constructor({ socketPath, timeoutMs = TIMEOUT_MS }: RuntimeClientOptions) {
    this.socketPath = pathOf(socketPath);
    if (!(Number.isFinite(timeoutMs) && timeoutMs > 0)) {
      const valid = 'milliseconds, more than 0';
      throw new NodeError('ERR_INVALID_OPTION', `timeoutMs is ${timeoutMs}; valid: ${valid}`, {
        value: timeoutMs,
        valid,
      });
    }
    this.timeoutMs = timeoutMs;
    const service = serviceDefinition(new Schema('cri'), 'runtime.v1.RuntimeService');
    const { credentials, makeClientConstructor } = grpc();
    const Runtime = makeClientConstructor(service, 'RuntimeService');
    // The socket's path is not a host name. Without this it would be sent as :authority, which
    // servers that follow RFC 3986 refuse.
    this.#client = new Runtime(`unix://${this.socketPath}`, credentials.createInsecure(), {
      'grpc.default_authority': 'localhost',
      'grpc.max_reconnect_backoff_ms': 1000,
      // The kubelet's limit.
      'grpc.max_receive_message_length': 16 << 20,
    });
  }

  /**
   * Makes one call, such as `ListContainers`.
   * @throws ERR_RUNTIME_UNREACHABLE if no server listens on the socket; ERR_RUNTIME_PERMISSION if
   *   this user may not connect; ERR_RUNTIME_TIMEOUT without an answer in time;
   *   ERR_RUNTIME_UNSUPPORTED if the runtime has no such call; ERR_RUNTIME_NOT_FOUND if it does not
   *   know the container; ERR_RUNTIME for any other refusal
   */
  call(method: string, request: Message = {}, timeoutMs = this.timeoutMs): Promise<Message> {
    const flaw = whyClosed(this.socketPath);
    if (flaw) return Promise.reject(flaw);
    const call = (this.#client as unknown as Record<string, Call>)[method]!.bind(this.#client);
    return new Promise((resolve, reject) => {
      call(request, { deadline: Date.now() + timeoutMs }, (error, response) => {
        if (!error) resolve(response);
        else if (error.code === grpc().status.UNIMPLEMENTED) this.#unsupported(method, error).then(reject);
        else reject(this.#errorOf(method, error, timeoutMs));
      });
    });
  }

  close(): void {
    this.#client.close();
  }

  // An older runtime may have the earlier version.
  async #unsupported(method: string, cause: ServiceError): Promise<NodeError> {
    const { socketPath } = this;
    const former = await this.#hasFormerVersion();
    const reason = former ? 'it only has runtime.v1alpha2' : cause.details;
    return new NodeError(
      'ERR_RUNTIME_UNSUPPORTED',
      `the runtime on ${socketPath} has no ${method} of runtime.v1: ${reason}`,
      {
        value: former ? 'v1alpha2' : socketPath,
        valid: 'CRI v1, since containerd 1.6 and CRI-O 1.23, and not disabled',
        cause,
      },
    );
  }

  #hasFormerVersion(): Promise<boolean> {
    const none = Buffer.alloc(0);
    return new Promise((resolve) => {
      this.#client.makeUnaryRequest(
        '/runtime.v1alpha2.RuntimeService/Version',
        () => none,
        () => none,
        none,
        { deadline: Date.now() + this.timeoutMs },
        (error) => resolve(error === null),
      );
    });
  }

  #errorOf(method: string, error: ServiceError, timeoutMs: number): NodeError {
    const { status } = grpc();
    const { socketPath } = this;
    const facts = { value: socketPath, cause: error };
    const text = error.details || error.message;
    switch (error.code) {
      case status.UNAVAILABLE:
        return new NodeError(
          'ERR_RUNTIME_UNREACHABLE',
          `no container runtime answers on ${socketPath}: ${text}`,
          { ...facts, valid: 'the socket of a runtime that runs' },
        );
      case status.DEADLINE_EXCEEDED:
        return new NodeError(
          'ERR_RUNTIME_TIMEOUT',
          `the runtime on ${socketPath} gave no answer to ${method} in ${timeoutMs} ms`,
          { ...facts, valid: 'a runtime that answers' },
        );
      case status.NOT_FOUND:
        return new NodeError('ERR_RUNTIME_NOT_FOUND', `${method}: ${text}`, facts);
      default:
        return new NodeError('ERR_RUNTIME', `${method}: ${withRemedy(text)}`, facts);
    }
  }
}

// Both plugins hear of the update of a container over CRI.
function withRemedy(text: string): string {
  return conflictIn(text) ? `${text} (${CONFLICT_REMEDY})` : text;
}

function pathOf(socket: unknown): string {
  const path = typeof socket === 'string' ? socket.replace(/^unix:(\/\/)?(?=\/)/, '') : '';
  if (path.startsWith('/')) return path;
  const valid = 'the absolute path of a Unix socket, or unix:// and the path';
  throw new NodeError('ERR_INVALID_OPTION', `socketPath is ${String(socket)}; valid: ${valid}`, {
    value: socket,
    valid,
  });
}

// gRPC says "connection refused" for each of these.
function whyClosed(path: string): NodeError | undefined {
  const facts = { value: path, valid: 'the socket of a runtime that runs' };
  try {
    if (!statSync(path).isSocket())
      return new NodeError('ERR_RUNTIME_UNREACHABLE', `${path} is not a socket`, facts);
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const cause = { ...facts, cause: error };
    if (code === 'EACCES' || code === 'EPERM') {
      return new NodeError('ERR_RUNTIME_PERMISSION', `this user may not use ${path} (${code})`, {
        ...cause,
        valid: "the socket's owner, mostly root",
      });
    }
    return new NodeError('ERR_RUNTIME_UNREACHABLE', `there is no runtime at ${path} (${code})`, cause);
  }
  return undefined;
}
