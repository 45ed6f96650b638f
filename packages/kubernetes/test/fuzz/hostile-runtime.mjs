// A hostile runtime on one connection with a plugin. A seed decides what it does.
import { setTimeout as sleep } from 'node:timers/promises';
import { bomb, encode, frame, METHODS, mutate, mux, payloadOf, request, response } from './frames.mjs';

const [REQUEST, RESPONSE] = [1, 2];
const EMPTY = Buffer.alloc(0);

// Without those that end a session where they fail.
const EVENTFUL = METHODS.filter((method) => method !== 'Configure' && method !== 'Synchronize');

/** The ways of a session, and how often each is taken. */
export const WAYS = {
  honest: 3,
  messages: 6,
  frames: 5,
  bytes: 5,
  lengths: 4,
  flood: 2,
  bomb: 1,
  truncated: 3,
};

export class HostileRuntime {
  /** True if every frame so far was whole, so that a good request after it must have an answer. */
  isFramed = true;
  /** The code of the error for which the plugin must close the connection, of its own accord. */
  illegal = undefined;
  #stream = 1;
  #received = EMPTY;
  #answers = new Map();
  #turn = Promise.resolve();

  constructor(random, socket) {
    this.random = random;
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('data', (bytes) => this.#read(bytes));
    this.closed = new Promise((resolve) => socket.on('close', resolve));
  }

  /** Does its worst, and returns once it is done or the plugin has ended. */
  async run(way) {
    const { random } = this;
    if (way === 'flood') return this.#flood();
    await this.#open(way);
    const count = 1 + random.below(30);
    for (let i = 0; i < count && !this.socket.destroyed; i += 1) {
      await this.#write(this.#act(way));
      if (random.chance(10)) await sleep(random.below(3));
    }
  }

  /** A correct call: the message of its answer, or undefined if the plugin has ended. */
  async probe() {
    // Whatever streams were used: streams must rise.
    const stream = 0xffffffff;
    const answer = new Promise((resolve) => this.#answers.set(stream, resolve));
    const message = request('StateChange', encode('StateChangeEvent', { event: 99 }));
    await this.#write(mux(1, frame({ stream, type: REQUEST, message })));
    return Promise.race([answer, this.closed.then(() => undefined)]);
  }

  async #open(way) {
    const { random } = this;
    const isGood = way === 'honest' || !random.chance(4);
    const parts = [
      mux(2, frame({ stream: 1, type: RESPONSE, message: response(EMPTY) })),
      this.#call('Configure', encode('ConfigureRequest', { runtime_name: 'hostile' })),
      this.#call('Synchronize', encode('SynchronizeRequest', {})),
    ];
    if (!isGood) parts.splice(random.below(3), 1 + random.below(2));
    // Its answer to the registration may come at any time.
    parts.splice(random.below(3), 0, parts.shift() ?? EMPTY);
    for (const part of parts) await this.#write(part);
  }

  #act(way) {
    const { random } = this;
    const method = random.pick(random.chance(4) ? METHODS : EVENTFUL);
    const payload = payloadOf(random, method);
    if (way === 'honest') return this.#call(method, payload);
    if (way === 'messages') return this.#strangeMessage(method, payload);
    if (way === 'frames') return this.#strangeFrame(request(method, payload));
    if (way === 'bomb') return this.#call(random.pick(['Synchronize', method]), bomb(random));
    const good = this.#call(method, payload);
    if (way === 'lengths') return this.#strangeLength(request(method, payload));
    if (random.chance(3)) return good;
    this.isFramed = false;
    if (way === 'truncated') return good.subarray(0, random.below(good.length));
    if (random.chance(2)) return mux(1, mutate(random, good.subarray(8)));
    return mutate(random, good);
  }

  #call(method, payload) {
    this.#stream += 2;
    return mux(1, frame({ stream: this.#stream, type: REQUEST, message: request(method, payload) }));
  }

  #strangeMessage(method, payload) {
    const { random } = this;
    if (random.chance(3)) return this.#call(method, mutate(random, payload));
    if (random.chance(3))
      return this.#call(
        random.pick(['toString', '__proto__', '', method]),
        random.chance(2) ? payload : EMPTY,
      );
    this.#stream += 2;
    const message = mutate(random, request(method, payload));
    return mux(1, frame({ stream: this.#stream, type: REQUEST, message }));
  }

  #strangeFrame(message) {
    const { random } = this;
    // The probe's stream must be higher.
    const stream = random.pick([0, 1, 2, 3, this.#stream, this.#stream + 2, 2 ** 31, 2 ** 32 - 2]);
    const type = random.pick([0, REQUEST, RESPONSE, 3, 4, 255]);
    const flags = random.pick([0, 1, 2, 4, 255]);
    const content =
      type === RESPONSE ? random.pick([response(EMPTY), mutate(random, response(EMPTY))]) : message;
    const bytes = frame({ stream, type, flags, message: content });
    // Several mux frames for a message, or empty ones.
    const at = random.below(bytes.length);
    const connection = random.pick([1, 1, 2, 0, 3, 2 ** 32 - 1]);
    return Buffer.concat([
      mux(connection, bytes.subarray(0, at)),
      mux(7, message),
      mux(connection, EMPTY),
      mux(connection, bytes.subarray(at)),
    ]);
  }

  #strangeLength(message) {
    const { random } = this;
    this.#stream += 2;
    const good = frame({ stream: this.#stream, type: REQUEST, message });
    const wrong = [0, 1, message.length - 1, message.length + 1, 4 << 20, (4 << 20) + 1, (1 << 24) - 1];
    const length = random.pick([...wrong, 1 << 24, (1 << 24) + 1, 2 ** 31, 2 ** 32 - 1]);
    if (random.chance(3)) return mux(1, good);
    const isMux = random.chance(2);
    // What comes after a length that is merely wrong may be read as anything.
    if (this.isFramed && isMux && length > 16 << 20) this.illegal = 'ERR_TTRPC_MUX';
    if (this.isFramed && !isMux && length >= 1 << 24) this.illegal = 'ERR_TTRPC_FRAME';
    this.isFramed = false;
    if (isMux) return mux(1, good, length);
    return mux(1, frame({ stream: this.#stream, type: REQUEST, message, length }));
  }

  /** Requests without end, without a read of any answer. */
  async #flood() {
    const { random, socket } = this;
    socket.pause();
    const method = random.pick(METHODS);
    const part = Buffer.concat(
      Array.from({ length: 50 }, () => this.#call(method, payloadOf(random, method))),
    );
    this.illegal = 'ERR_TTRPC_STALLED';
    while (!socket.destroyed) {
      socket.write(part);
      await new Promise(setImmediate);
      // What does not go out is not written again and again.
      while (socket.writableLength > 1 << 20 && !socket.destroyed) await sleep(20);
    }
  }

  // One after the other: what is cut stays together.
  #write(bytes) {
    this.#turn = this.#turn.then(() => this.#writeParts(bytes));
    return this.#turn;
  }

  async #writeParts(bytes) {
    const { random, socket } = this;
    const most = random.chance(4) ? 8 : random.chance(4) ? 500 : bytes.length;
    // A large one in some hundreds of parts, not in thousands.
    const least = Math.ceil(bytes.length / 500);
    for (let at = 0; at < bytes.length && !socket.destroyed; ) {
      const size = least + random.below(most);
      socket.write(bytes.subarray(at, at + size));
      at += size;
      if (random.chance(8)) await new Promise(setImmediate);
    }
  }

  #read(bytes) {
    this.#received = Buffer.concat([this.#received, bytes]);
    while (this.#received.length >= 8 && this.#received.length >= 8 + this.#received.readUInt32BE(4)) {
      const end = 8 + this.#received.readUInt32BE(4);
      this.#receive(this.#received.readUInt32BE(0), this.#received.subarray(8, end));
      this.#received = this.#received.subarray(end);
    }
  }

  // Answers are small: each has a mux frame of its own, or begins in one.
  #receive(connection, bytes) {
    if (bytes.length < 10) return;
    const [stream, type] = [bytes.readUInt32BE(4), bytes[8]];
    if (connection === 1 && type === RESPONSE) this.#answers.get(stream)?.(bytes.subarray(10));
    // The plugin's own calls, answered in some order, wrongly, or not at all.
    if (connection === 2 && type === REQUEST && stream > 1) this.#answer(stream);
  }

  async #answer(stream) {
    const { random } = this;
    if (random.chance(3)) return;
    if (random.chance(2)) await sleep(random.below(5));
    const message = random.pick([
      response(EMPTY),
      response(EMPTY, { code: 5, message: 'no' }),
      mutate(random, response(EMPTY)),
    ]);
    await this.#write(mux(2, frame({ stream, type: RESPONSE, message })));
  }
}
