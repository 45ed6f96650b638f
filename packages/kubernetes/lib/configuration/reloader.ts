// Reloader: applies changes of the configuration while containers run. What grants stand against
// waits until they end; what cannot be used changes nothing.
import { isDeepStrictEqual } from 'node:util';
import { CpuSet, type Manager, type NumalignError, type Settings, type StateChange } from 'numalign';
import type { MachineOptions } from 'numalign/tools';
import type { Log, LogFields } from '../base/log.js';
import { Rounds } from '../base/rounds.js';
import { type RecordEvent, THIS_NODE } from '../events/event.js';
import type { Metrics } from '../metrics/metrics.js';
import {
  type Configuration,
  changedFields,
  readConfiguration,
  type Sources,
  valueText,
} from './configuration.js';
import { type FieldName, rowOf } from './fields.js';
import { FileWatch } from './file-watch.js';
import { type LiveConfiguration, liveOf } from './live.js';
import { changedSettings } from './manager-part.js';

export interface ReloaderOptions {
  readonly manager: Manager;
  readonly sources: Sources;
  /** The configuration that the manager was opened with. */
  readonly configuration: Configuration;
  readonly live: LiveConfiguration;
  /** Settings that the state did not have at the start, see openConfigured. */
  readonly waiting: MachineOptions | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly recordEvent: RecordEvent;
  /** The live part has changed. */
  readonly changed: () => void;
}

/** What became of a change, and the reason of its Event. */
const RESULTS = {
  applied: 'ConfigurationApplied',
  invalid: 'InvalidConfiguration',
  waiting: 'ConfigurationWaits',
  restart: 'ConfigurationNeedsRestart',
} as const;
type Result = keyof typeof RESULTS;

const LEVELS = { applied: 'info', invalid: 'error', waiting: 'warn', restart: 'warn' } as const;

export class Reloader {
  readonly #options: ReloaderOptions;
  readonly #watch: FileWatch;
  readonly #rounds: Rounds;
  #configuration: Configuration;
  #live: LiveConfiguration;
  // Settings that grants stand against.
  #waiting: MachineOptions | undefined;
  // What was said about them.
  #conflict: string | undefined;
  #isConflict = false;
  // The fields that wait for a restart.
  #stale: readonly string[] = [];
  // What is wrong with the files.
  #flaw: string | undefined;
  #isAsked = false;
  readonly #count: (result: Result) => void;

  constructor(options: ReloaderOptions) {
    const { manager, metrics, log } = options;
    this.#options = options;
    this.#configuration = options.configuration;
    this.#live = options.live;
    this.#waiting = options.waiting;
    const counter = metrics.counter(
      'configuration_changes_total',
      'Changes of the configuration, by what became of them.',
      ['result'],
    );
    for (const result of Object.keys(RESULTS)) counter.add({ result }, 0);
    this.#count = (result) => counter.add({ result });
    metrics.gauge(
      'configuration_state',
      '1 for what differs from the configuration: files that are invalid, settings that wait for grants to end, fields that wait for a restart.',
      ['reason'],
      () => [
        [{ reason: 'invalid' }, Number(this.#flaw !== undefined)],
        [{ reason: 'waiting' }, Number(this.#waiting !== undefined)],
        [{ reason: 'restart' }, Number(this.#stale.length > 0)],
      ],
    );
    this.#rounds = new Rounds(() => this.#round());
    this.#watch = new FileWatch({
      changed: () => void this.#rounds.ask(),
      failed: (error) => log('warn', `changes of the configuration need SIGHUP: ${error.message}`),
    });
    manager.on('change', this.#onChange);
  }

  get live(): LiveConfiguration {
    return this.#live;
  }

  /** Applies what waits, and follows the files. Resolves once that is done; never rejects. */
  start(): Promise<void> {
    this.#watch.follow(this.#configuration.files);
    return this.#waiting ? this.#applyWaiting() : Promise.resolve();
  }

  /** Reads the files again. Resolves once that is done; never rejects. */
  reload(): Promise<void> {
    this.#isAsked = true;
    return this.#rounds.ask();
  }

  async close(): Promise<void> {
    this.#options.manager.off('change', this.#onChange);
    this.#watch.close();
    await this.#rounds.end();
  }

  // What ended may have stood against the settings that wait.
  readonly #onChange = ({ removed, changed }: StateChange): void => {
    if (this.#waiting && (!this.#isConflict || removed.length + changed.length > 0)) void this.#rounds.ask();
  };

  async #round(): Promise<void> {
    const isAsked = this.#isAsked;
    this.#isAsked = false;
    await this.#readFiles(isAsked);
    if (this.#waiting) await this.#applyWaiting();
  }

  async #readFiles(isAsked: boolean): Promise<void> {
    const { manager, sources, log } = this.#options;
    let next: Configuration;
    let live: LiveConfiguration;
    try {
      next = readConfiguration(sources);
      live = await liveOf(next, manager, this.#options.configuration.values);
    } catch (error) {
      return this.#refuse(error as Error);
    }
    const before = this.#configuration;
    const isSame = isDeepStrictEqual([before.values, before.manager], [next.values, next.manager]);
    if (isSame && (isAsked || this.#flaw !== undefined)) log('info', 'the configuration is unchanged');
    this.#flaw = undefined;
    this.#watch.follow(next.files);
    if (!isSame) this.#change(next, live);
  }

  #refuse(error: Error): void {
    if (this.#flaw === error.message) return;
    this.#flaw = error.message;
    this.#tell('invalid', `the configuration stays as it is: ${error.message}`, {
      code: (error as { code?: string }).code,
    });
  }

  #change(next: Configuration, live: LiveConfiguration): void {
    const before = this.#configuration;
    this.#configuration = next;
    this.#live = live;
    this.#options.changed();
    const applied = changedFields(before, next).filter((name) => rowOf(name).part !== 'start');
    if (applied.length > 0 || live.stale.length === 0) {
      const texts = applied
        .filter((name) => rowOf(name).part !== 'machine')
        .map((name) => `${name}: ${shown(before, name)} -> ${shown(next, name)}`);
      this.#tell('applied', `the configuration has changed${texts.map((text) => `; ${text}`).join('')}`);
    }
    this.#tellStale(live.stale);
    const [had, has] = [before.manager.settings, next.manager.settings];
    if (!isDeepStrictEqual(had, has)) this.#waiting = changedSettings(had, has);
  }

  #tellStale(stale: readonly string[]): void {
    const isSame = isDeepStrictEqual(stale, this.#stale);
    this.#stale = stale;
    if (isSame || stale.length === 0) return;
    this.#tell('restart', `these fields have an effect at the next start: ${stale.join(', ')}`);
  }

  async #applyWaiting(): Promise<void> {
    const { manager } = this.#options;
    const settings = this.#waiting!;
    const before = manager.settings();
    try {
      const now = await manager.configure(settings);
      this.#waiting = undefined;
      this.#conflict = undefined;
      this.#tellSettings(before, now);
    } catch (error) {
      this.#keepSettings(settings, error as NumalignError);
    }
  }

  #keepSettings(settings: MachineOptions, error: NumalignError): void {
    const { code, message } = error;
    if (code === 'ERR_INVALID_OPTION') {
      this.#waiting = undefined;
      this.#refuse(error);
      return;
    }
    // What is no conflict, such as a lock that is not free in time, is tried at any change.
    this.#isConflict = code === 'ERR_CONFIG_CONFLICT';
    if (this.#conflict === message) return;
    this.#conflict = message;
    const until = this.#isConflict ? 'until grants end' : 'until the state changes';
    const names = Object.keys(settings).join(', ');
    this.#tell('waiting', `the settings of the machine stay as they are ${until} (${names}): ${message}`, {
      code,
    });
  }

  #tellSettings(before: Settings, now: Settings): void {
    const names = Object.keys(now) as (keyof Settings)[];
    const texts = names
      .filter((name) => textOf(before[name]) !== textOf(now[name]))
      .map((name) => `${name}: ${textOf(before[name])} -> ${textOf(now[name])}`);
    if (texts.length > 0)
      this.#tell('applied', `the settings of the machine have changed; ${texts.join('; ')}`);
    const usable = now.managedCPUs.difference(now.reservedSystemCPUs);
    for (const { uid, name, cpus } of this.#options.manager.grants()) {
      const beyond = cpus.difference(usable);
      if (beyond.isEmpty) continue;
      const text = `${name} keeps CPUs ${beyond} until it ends, which are reserved or not managed now`;
      this.#options.log('warn', text, { grant: uid });
    }
  }

  #tell(result: Result, message: string, fields: LogFields = {}): void {
    const { log, recordEvent } = this.#options;
    log(LEVELS[result], message, fields);
    this.#count(result);
    const type = result === 'applied' ? 'Normal' : 'Warning';
    recordEvent({ about: THIS_NODE, type, reason: RESULTS[result], message });
  }
}

const shown = ({ values }: Configuration, name: FieldName): string =>
  valueText(values[name] ?? rowOf(name).defaultWords);

const textOf = (value: unknown): string => valueText(value instanceof CpuSet ? value.toString() : value);
