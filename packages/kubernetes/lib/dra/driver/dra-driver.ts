// DraDriver: the driver of a node for ResourceClaims: a kubelet plugin that grants CPUs and memory.
import { isAbsolute } from 'node:path';
import type { ApiServer } from '../../api-server/api-server.js';
import type { Condition } from '../../base/condition.js';
import { NodeError } from '../../base/errors.js';
import { FolderWatch } from '../../base/folder-watch.js';
import type { Log } from '../../base/log.js';
import { reported } from '../../base/reported.js';
import { Rounds } from '../../base/rounds.js';
import type { FindClaim } from '../../claims/claimed-holdings.js';
import { NO_EVENTS, type RecordEvent } from '../../events/event.js';
import { type Metrics, NO_METRICS } from '../../metrics/metrics.js';
import { type ContainerPolicy, NO_POLICY } from '../../placement/container-policy.js';
import { DRIVER } from '../devices.js';
import { CDI_FOLDER, CdiFiles } from '../preparation/cdi-files.js';
import type { ClaimManager } from '../preparation/claim-grants.js';
import { type ClaimedContainers, Preparation } from '../preparation/preparation.js';
import { DraServer } from '../protocol/dra-server.js';
import { type DeviceHealth, HealthStreams } from '../protocol/health-streams.js';
import { type DraSockets, socketNames } from '../protocol/socket-names.js';
import { healthOf } from './claim-health.js';
import { ClaimStatuses } from './claim-status.js';
import { ClaimsAtServer } from './claims-at-server.js';

export interface DraDriverOptions {
  /** The caller closes it. */
  readonly manager: ClaimManager;
  /** What places containers; without it no claim is prepared. */
  readonly containers: ClaimedContainers;
  readonly kubeletFolder: string;
  /** Where runtimes look for devices. Default: {@link CDI_FOLDER}. */
  readonly cdiFolder?: string;
  /** The uid of the pod that this runs in: during an update there may be two. Default: none. */
  readonly instance?: string | undefined;
  readonly apiServer: Pick<ApiServer, 'get' | 'patch'>;
  /** Default: as the manager was opened. */
  readonly policy?: () => ContainerPolicy;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly recordEvent?: RecordEvent;
}

// A claim is rarely left over.
const SWEEP_MS = 600_000;
const HEALTH_MS = 250;
const EVENTS = ['change', 'hotplug', 'drift'] as const;

function checkOption(isRight: boolean, name: string, value: unknown, valid: string): void {
  if (isRight) return;
  const text = `${name} must be ${valid}, not ${String(value)}`;
  throw new NodeError('ERR_INVALID_OPTION', text, { value, valid });
}

export class DraDriver {
  /** The name by which DeviceClasses and ResourceSlices know it. */
  readonly driver = DRIVER;
  readonly #manager: ClaimManager;
  readonly #log: Log;
  readonly #sockets: DraSockets;
  readonly #preparation: Preparation;
  readonly #statuses: ClaimStatuses;
  readonly #health = new HealthStreams();
  readonly #watches: readonly FolderWatch[];
  readonly #rounds = new Rounds(() => this.#follow());
  readonly #sweeps = new Rounds(() => this.#sweep());
  #server: DraServer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #healthTimer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #flaw = 'no kubelet has registered it yet';
  #isRegistered = false;
  #offered: readonly DeviceHealth[] = [];

  /** @throws ERR_INVALID_OPTION */
  constructor(options: DraDriverOptions) {
    const { driver } = this;
    const { cdiFolder = CDI_FOLDER, kubeletFolder, instance, containers } = options;
    const { manager, policy = () => NO_POLICY, metrics = NO_METRICS, recordEvent = NO_EVENTS } = options;
    checkOption(isAbsolute(cdiFolder), 'cdiFolder', cdiFolder, 'an absolute path');
    checkOption(isAbsolute(kubeletFolder), 'kubeletFolder', kubeletFolder, 'an absolute path');
    const log = reported(options.log);
    this.#manager = manager;
    this.#log = log;
    this.#sockets = socketNames(kubeletFolder, driver, instance);
    const { apiServer } = options;
    const claims = new ClaimsAtServer(apiServer);
    this.#statuses = new ClaimStatuses({ driver, apiServer, claims, log });
    this.#preparation = new Preparation({
      ...{ manager, driver, containers, claims, policy, metrics, recordEvent, log },
      cdiFiles: new CdiFiles(cdiFolder, driver),
      tellStatus: (claim, outcome) => this.#statuses.tell(claim, outcome),
    });
    const { registryFolder, pluginFolder } = this.#sockets;
    this.#watches = [registryFolder, pluginFolder].map(
      (folder) =>
        new FolderWatch({
          folder,
          changed: () => void this.#rounds.ask(),
          failed: (error) => log('error', `${folder} cannot be watched: ${error.message}`),
        }),
    );
  }

  /** The claims that are prepared. */
  get findClaim(): FindClaim {
    return this.#preparation.find;
  }

  /** The devices of the node, for the kubelet. */
  publishHealth(devices: readonly DeviceHealth[]): void {
    this.#offered = devices;
    this.#look();
  }

  get condition(): Condition {
    const text = this.#isRegistered ? `the kubelet has registered ${this.driver}` : this.#flaw;
    return { part: 'dra', isMet: this.#isRegistered, isVital: false, text };
  }

  /**
   * Serves, and announces itself to the kubelet. Call it once, when containers are placed.
   * @throws ERR_SOCKET_PATH, ERR_SOCKET_IN_USE; what the kernel refuses
   */
  async start(): Promise<void> {
    void this.#sweeps.ask();
    this.#timer = setInterval(() => void this.#sweeps.ask(), SWEEP_MS).unref();
    for (const event of EVENTS) this.#manager.on(event, this.#look);
    await this.#serve();
    for (const watch of this.#watches) watch.start();
    void this.#rounds.ask();
  }

  async #serve(): Promise<void> {
    await this.#server?.close();
    this.#server = undefined;
    this.#isRegistered = false;
    this.#server = await DraServer.listen(this.driver, this.#sockets, {
      prepare: (claim) => this.#preparation.prepare(claim),
      unprepare: (claim) => this.#preparation.unprepare(claim),
      watch: (stream) => {
        this.#health.serve(stream);
        this.#publishHealth();
      },
      registered: (flaw) => this.#registered(flaw),
    });
  }

  async #sweep(): Promise<void> {
    try {
      await this.#preparation.sweep();
    } catch (error) {
      this.#log('warn', `what claims have left is not looked for: ${(error as Error).message}`);
    }
  }

  #registered(flaw: string | undefined): void {
    this.#isRegistered = flaw === undefined;
    this.#flaw = `the kubelet refuses ${this.driver}: ${flaw}`;
    if (flaw === undefined) this.#log('info', `${this.driver} is registered with the kubelet`);
    else this.#log('error', this.#flaw);
  }

  // Records change in bursts, and all claims are looked at.
  readonly #look = (): void => {
    if (this.#healthTimer || !this.#health.hasStreams) return;
    this.#healthTimer = setTimeout(() => this.#publishHealth(), HEALTH_MS).unref();
  };

  // A kubelet asks for the health of devices that pods have.
  #publishHealth(): void {
    clearTimeout(this.#healthTimer);
    this.#healthTimer = undefined;
    try {
      this.#health.publish(healthOf(this.#manager, this.#preparation.claims, this.#offered));
    } catch (error) {
      this.#log('warn', `the health of claims is unknown: ${(error as Error).message}`);
    }
  }

  // Someone may have emptied the folders, such as who sets up the node again.
  async #follow(): Promise<void> {
    if (this.#isClosed || this.#server?.isReachable) return;
    try {
      await this.#serve();
      this.#log('warn', `the sockets of ${this.driver} were removed: it serves again`);
    } catch (error) {
      this.#log('error', `${this.driver} cannot be announced: ${(error as Error).message}`);
    }
  }

  /** Answers what was asked before, and withdraws from the kubelet. Claims stay prepared. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#healthTimer);
    for (const event of EVENTS) this.#manager.off(event, this.#look);
    for (const watch of this.#watches) watch.close();
    await this.#rounds.end();
    this.#health.close();
    await this.#server?.close();
    this.#server = undefined;
    await this.#preparation.close();
    await this.#statuses.close();
  }
}
