// DraServer: a DRA plugin as the kubelet sees it: a socket that announces it, and one with its services.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Server, ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js';
import { NodeError } from '../../base/errors.js';
import { grpc } from '../../base/late-packages.js';
import { serviceDefinition } from '../../grpc/service.js';
import { checkSocketPath, isServed, listen, removeDead } from '../../grpc/sockets.js';
import { type Message, Schema } from '../../protobuf/schema.js';
import type { HealthStream } from './health-streams.js';
import { type DraSockets, isEndpoint, isRegistrationOf } from './socket-names.js';

/** A claim, as the kubelet names it. */
export interface ClaimName {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** A device of a claim, for the kubelet and the runtime. */
export interface PreparedDevice {
  readonly requests: readonly string[];
  readonly pool: string;
  readonly device: string;
  readonly cdiIds: readonly string[];
  readonly shareId: string | undefined;
}

export interface DraAnswers {
  /** @throws Error with the reason why the claim is not prepared */
  prepare(claim: ClaimName): Promise<readonly PreparedDevice[]>;
  /** @throws Error with the reason why the claim is still prepared */
  unprepare(claim: ClaimName): Promise<void>;
  watch(stream: HealthStream): void;
  /** The kubelet has registered the driver, or has refused to. */
  registered(flaw: string | undefined): void;
}

export const PLUGIN_TYPE = 'DRAPlugin';
/** As the kubelet names them when a driver registers. */
export const SERVICES = ['v1.DRAPlugin', 'v1beta1.DRAPlugin', 'v1alpha1.DRAResourceHealth'] as const;

// How long calls may take that were made before the end.
const PATIENCE_MS = 5_000;
const PACKAGE = 'k8s.io.kubelet.pkg.apis.dra';
const HEALTH = 'v1alpha1.DRAResourceHealth';

function unary(answer: (request: Message) => Promise<Message>) {
  return (call: ServerUnaryCall<Message, Message>, reply: sendUnaryData<Message>) => {
    answer(call.request).then(
      (message) => reply(null, message),
      (error) => reply(error),
    );
  };
}

/** One after the other; a claim that fails does not keep the others back. */
async function answerEach(
  { claims }: Message,
  answer: (claim: ClaimName) => Promise<Message>,
): Promise<Message> {
  const answers: [string, Message][] = [];
  for (const claim of claims as ClaimName[])
    answers.push([claim.uid, await answer(claim).catch((error: Error) => ({ error: messageOf(error) }))]);
  return { claims: Object.fromEntries(answers) };
}

const messageOf = ({ message, code }: Error & { code?: string }) =>
  code === undefined ? message : `${code}: ${message}`;

const deviceMessage = ({ requests, pool, device, cdiIds, shareId }: PreparedDevice): Message => ({
  ...{ request_names: requests, pool_name: pool, device_name: device, cdi_device_ids: cdiIds },
  ...(shareId !== undefined && { share_id: shareId }),
});

export class DraServer {
  readonly #sockets: DraSockets;
  readonly #services: Server;
  readonly #registration: Server;

  private constructor(sockets: DraSockets, services: Server, registration: Server) {
    this.#sockets = sockets;
    this.#services = services;
    this.#registration = registration;
  }

  /**
   * Serves, and then announces itself. Sockets of ended instances are removed.
   * @throws ERR_SOCKET_PATH; ERR_SOCKET_IN_USE if another process serves the same; what the kernel
   *   refuses
   */
  static async listen(driver: string, sockets: DraSockets, answers: DraAnswers): Promise<DraServer> {
    const { registryFolder, pluginFolder } = sockets;
    const endpoint = join(pluginFolder, sockets.endpoint);
    for (const path of [endpoint, join(registryFolder, sockets.registration)]) checkSocketPath(path);
    for (const folder of [registryFolder, pluginFolder]) mkdirSync(folder, { recursive: true, mode: 0o750 });
    await removeDead(pluginFolder, isEndpoint);
    await removeDead(registryFolder, isRegistrationOf(driver));
    await refuseServed(endpoint);
    await refuseServed(join(registryFolder, sockets.registration));
    const services = servicesOf(answers);
    await listen(services, endpoint);
    try {
      const registration = registrationOf(driver, endpoint, answers);
      await listen(registration, join(registryFolder, sockets.registration));
      return new DraServer(sockets, services, registration);
    } catch (error) {
      services.forceShutdown();
      throw error;
    }
  }

  /** False once someone has removed a socket. */
  get isReachable(): boolean {
    const { registryFolder, registration, pluginFolder, endpoint } = this.#sockets;
    return existsSync(join(registryFolder, registration)) && existsSync(join(pluginFolder, endpoint));
  }

  /** Withdraws the announcement, answers what was asked before, and ends. */
  async close(): Promise<void> {
    this.#registration.forceShutdown();
    const answered = new Promise<void>((resolve) => this.#services.tryShutdown(() => resolve()));
    await Promise.race([answered, pause(PATIENCE_MS, undefined, { ref: false })]);
    this.#services.forceShutdown();
  }
}

async function refuseServed(path: string): Promise<void> {
  if (!existsSync(path) || !(await isServed(path))) return;
  throw new NodeError('ERR_SOCKET_IN_USE', `another process serves ${path}`, {
    value: path,
    valid: 'one instance of the driver, or a POD_UID for each',
  });
}

function servicesOf(answers: DraAnswers): Server {
  const server = new (grpc().Server)();
  const [dra, health] = [new Schema('dra'), new Schema('dra-health')];
  const implementation = {
    NodePrepareResources: unary((request) =>
      answerEach(request, async (claim) => ({ devices: (await answers.prepare(claim)).map(deviceMessage) })),
    ),
    NodeUnprepareResources: unary((request) =>
      answerEach(request, async (claim) => {
        await answers.unprepare(claim);
        return {};
      }),
    ),
  };
  for (const version of ['v1', 'v1beta1'])
    server.addService(
      serviceDefinition(dra, `${PACKAGE}.v1.DRAPlugin`, `${PACKAGE}.${version}.DRAPlugin`),
      implementation,
    );
  server.addService(serviceDefinition(health, HEALTH), {
    NodeWatchResources: (stream: HealthStream) => answers.watch(stream),
  });
  return server;
}

function registrationOf(driver: string, endpoint: string, answers: DraAnswers): Server {
  const server = new (grpc().Server)();
  server.addService(serviceDefinition(new Schema('pluginregistration'), 'pluginregistration.Registration'), {
    GetInfo: unary(async () => ({
      ...{ type: PLUGIN_TYPE, name: driver, endpoint, supported_versions: [...SERVICES] },
    })),
    NotifyRegistrationStatus: unary(async ({ plugin_registered, error }) => {
      answers.registered(plugin_registered ? undefined : error || 'the kubelet gives no reason');
      return {};
    }),
  });
  return server;
}
