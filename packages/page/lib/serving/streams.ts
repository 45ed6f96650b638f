// Streams of server-sent events: the sections of the page that have changed.
import type { ServerResponse } from 'node:http';

/** What readers are sent, but for the sections that they have. */
export interface Update<Section extends string> {
  readonly time: string;
  readonly colors: number;
  readonly sections: Readonly<Record<Section, string>>;
}

/** A reader that takes nothing for this long is sent away; it may come again. */
const PATIENCE_MS = 60_000;
const KEEPALIVE_MS = 30_000;

/** One reader. At most one update waits for it, however slowly it reads. */
export class Stream<Section extends string> {
  readonly #response: ServerResponse;
  #sent: Partial<Record<Section, string>> = {};
  #latest: Update<Section> | undefined;
  #lateSince: number | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.socket?.setKeepAlive(true, KEEPALIVE_MS);
    response.on('drain', () => {
      this.#lateSince = undefined;
      this.#flush();
    });
    // A second to try again after a lost connection.
    response.write('retry: 1000\n\n');
  }

  send(update: Update<Section>): void {
    this.#latest = update;
    this.#flush();
  }

  #flush(): void {
    const { time, colors, sections } = this.#latest ?? {};
    if (sections === undefined) return;
    if (this.#response.writableNeedDrain) {
      this.#lateSince ??= performance.now();
      if (performance.now() - this.#lateSince > PATIENCE_MS) this.#response.destroy();
      return;
    }
    const names = (Object.keys(sections) as Section[]).filter((name) => sections[name] !== this.#sent[name]);
    const changed = Object.fromEntries(names.map((name) => [name, sections[name]]));
    this.#sent = sections;
    this.#latest = undefined;
    this.#response.write(`data: ${JSON.stringify({ time, colors, sections: changed })}\n\n`);
  }

  close(): void {
    this.#response.end();
  }
}

interface StreamsOptions<Section extends string> {
  readonly max: number;
  readonly intervalMs: number;
  /** The page at this moment; `isNew`: something has changed. */
  readonly look: (isNew: boolean) => Update<Section>;
  /** Calls `changed` at changes, until the function that it returns is called. */
  readonly watch: (changed: () => void) => () => void;
}

/** All readers. Without one, nothing is looked at and no timer runs. */
export class Streams<Section extends string> {
  readonly #options: StreamsOptions<Section>;
  readonly #streams = new Set<Stream<Section>>();
  #stopWatching = () => {};

  constructor(options: StreamsOptions<Section>) {
    this.#options = options;
  }

  get isFull(): boolean {
    return this.#streams.size >= this.#options.max;
  }

  /** REQUIRES: not full, and the head of the response is written. */
  add(response: ServerResponse): void {
    const stream = new Stream<Section>(response);
    this.#streams.add(stream);
    if (this.#streams.size === 1) this.#begin();
    response.once('close', () => {
      this.#streams.delete(stream);
      if (this.#streams.size === 0) this.#stopWatching();
    });
    stream.send(this.#options.look(false));
  }

  #begin(): void {
    const send = (isNew: boolean) => {
      const update = this.#options.look(isNew);
      for (const stream of this.#streams) stream.send(update);
    };
    const unwatch = this.#options.watch(() => send(true));
    const timer = setInterval(() => send(false), this.#options.intervalMs).unref();
    this.#stopWatching = () => {
      unwatch();
      clearInterval(timer);
    };
  }

  close(): void {
    for (const stream of this.#streams) stream.close();
  }
}
