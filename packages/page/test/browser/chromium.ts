// Debian's chromium over the DevTools protocol, by a pipe.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

type Parameters = Readonly<Record<string, unknown>>;
type Message = {
  id?: number;
  sessionId?: string;
  method?: string;
  params?: any;
  result?: any;
  error?: { message: string };
};

export class Chromium {
  readonly #child: ChildProcess;
  readonly #profile: string;
  readonly #waiting = new Map<number, (message: Message) => void>();
  readonly #listeners = new Set<(message: Message) => void>();
  #last = 0;

  constructor() {
    this.#profile = mkdtempSync(join(tmpdir(), 'numalign-chromium-'));
    const flags = [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--no-first-run',
    ];
    this.#child = spawn(
      'chromium',
      [...flags, '--remote-debugging-pipe', `--user-data-dir=${this.#profile}`],
      {
        stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
      },
    );
    let rest = '';
    (this.#child.stdio[4] as Readable).setEncoding('utf8').on('data', (text: string) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop()!;
      for (const message of messages) this.#receive(JSON.parse(message));
    });
  }

  #receive(message: Message): void {
    if (message.id !== undefined) this.#waiting.get(message.id)?.(message);
    for (const listener of this.#listeners) listener(message);
  }

  async call(method: string, params: Parameters = {}, sessionId?: string): Promise<any> {
    const id = ++this.#last;
    const answer = new Promise<Message>((resolve) => this.#waiting.set(id, resolve));
    (this.#child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    const { result, error } = await answer;
    this.#waiting.delete(id);
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  /** Calls `listener` with each event of a session; returns how to end it. */
  onEvent(sessionId: string, listener: (method: string, params: any) => void): () => void {
    const heard = (message: Message) => {
      if (message.method !== undefined && message.sessionId === sessionId)
        listener(message.method, message.params);
    };
    this.#listeners.add(heard);
    return () => void this.#listeners.delete(heard);
  }

  async open(url: string, options: TabOptions = {}): Promise<Tab> {
    const { background = false } = options;
    const { targetId } = await this.call('Target.createTarget', { url: 'about:blank', background });
    const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true });
    const tab = new Tab(this, targetId, sessionId);
    await tab.prepare(options);
    await tab.goTo(url);
    return tab;
  }

  async close(): Promise<void> {
    const ended = once(this.#child, 'exit');
    await this.call('Browser.close');
    await ended;
    // Its helpers may still be writing.
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

export interface TabOptions {
  readonly theme?: 'light' | 'dark';
  readonly width?: number;
  readonly height?: number;
  readonly script?: boolean;
  /** Leaves the tab that is seen in front. */
  readonly background?: boolean;
}

export class Tab {
  readonly #browser: Chromium;
  readonly #target: string;
  readonly #session: string;
  /** What the console and the security policy have complained about. */
  readonly complaints: string[] = [];

  constructor(browser: Chromium, target: string, session: string) {
    this.#browser = browser;
    this.#target = target;
    this.#session = session;
    browser.onEvent(session, (method, params) => {
      if (method === 'Log.entryAdded') this.complaints.push(params.entry.text);
      if (method === 'Runtime.exceptionThrown') this.complaints.push(params.exceptionDetails.text);
    });
  }

  call(method: string, params: Parameters = {}): Promise<any> {
    return this.#browser.call(method, params, this.#session);
  }

  async prepare({ theme = 'light', width = 1500, height = 1000, script = true }: TabOptions): Promise<void> {
    for (const domain of ['Page', 'Runtime', 'Log']) await this.call(`${domain}.enable`);
    await this.call('Performance.enable', { timeDomain: 'threadTicks' });
    const features = [{ name: 'prefers-color-scheme', value: theme }];
    await this.call('Emulation.setEmulatedMedia', { features });
    await this.call('Emulation.setDeviceMetricsOverride', {
      width,
      height,
      deviceScaleFactor: 1,
      mobile: false,
    });
    await this.call('Emulation.setScriptExecutionDisabled', { value: !script });
  }

  async goTo(url: string): Promise<void> {
    const loaded = new Promise<void>((resolve) => {
      const stop = this.#browser.onEvent(this.#session, (method) => {
        if (method !== 'Page.loadEventFired') return;
        stop();
        resolve();
      });
    });
    await this.call('Page.navigate', { url });
    await loaded;
  }

  /** Answers the browser's questions for a password; returns how many there were. */
  async answerPassword(password: string): Promise<() => number> {
    let count = 0;
    this.#browser.onEvent(this.#session, (method, { requestId }) => {
      if (method === 'Fetch.requestPaused') void this.call('Fetch.continueRequest', { requestId });
      if (method !== 'Fetch.authRequired') return;
      count++;
      const response = { response: 'ProvideCredentials', username: 'any', password };
      void this.call('Fetch.continueWithAuth', { requestId, authChallengeResponse: response });
    });
    await this.call('Fetch.enable', { handleAuthRequests: true });
    return () => count;
  }

  /** Milliseconds that the thread of the page has worked, by its own clock. */
  async threadMs(): Promise<number> {
    const { metrics } = await this.call('Performance.getMetrics');
    const { value } = metrics.find(({ name }: { name: string }) => name === 'TaskDuration');
    return value * 1000;
  }

  /** The value of an expression in the page; awaited if it is a promise. */
  async evaluate<T>(expression: string): Promise<T> {
    const parameters = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', parameters);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async key(key: 'Tab' | 'Enter'): Promise<void> {
    const code = { Tab: 9, Enter: 13 }[key];
    const pressed = { key, code: key, windowsVirtualKeyCode: code, ...(key === 'Enter' && { text: '\r' }) };
    await this.call('Input.dispatchKeyEvent', { type: 'keyDown', ...pressed });
    await this.call('Input.dispatchKeyEvent', { type: 'keyUp', ...pressed });
  }

  /** A PNG of the whole page. */
  async screenshot(): Promise<Buffer> {
    const { data } = await this.call('Page.captureScreenshot', { captureBeyondViewport: true });
    return Buffer.from(data, 'base64');
  }

  close(): Promise<void> {
    return this.#browser.call('Target.closeTarget', { targetId: this.#target });
  }
}
