// The client of the scenario latency. It asks at fixed times, whether answers have arrived or not,
// so that a stalled server is measured, too. Prints the times until the answers, in nanoseconds,
// one list per worker.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

// `ports`: one for each worker.
const { ports, rate, seconds } = JSON.parse(process.argv[2]);
const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';
// The first answers come from code that is not compiled yet.
const WARM_UP_MS = 1000;

/**
 * A connection that is kept open. Answers come in the order of the requests, which wait in `asked`.
 */
async function open(port, times) {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  await once(socket, 'connect');
  const asked = [];
  let text = '';
  socket.setEncoding('latin1').on('data', (part) => {
    text += part;
    for (;;) {
      const head = text.indexOf('\r\n\r\n');
      const [, bytes] = /content-length: (\d+)/i.exec(text) ?? [];
      const end = head + 4 + Number(bytes);
      if (head < 0 || text.length < end) return;
      text = text.slice(end);
      times.push((performance.now() - asked.shift()) * 1e6);
    }
  });
  return {
    get isFree() {
      return asked.length === 0;
    },
    ask() {
      asked.push(performance.now());
      socket.write(REQUEST);
    },
    close: () => socket.destroy(),
  };
}

async function measure(port) {
  const times = [];
  const connections = [];
  const begin = performance.now();
  const end = begin + WARM_UP_MS + seconds * 1000;
  let warmUps = 0;
  for (let next = begin; next < end; next += 1000 / rate) {
    await pause(Math.max(0, next - performance.now()));
    if (performance.now() - begin < WARM_UP_MS) warmUps++;
    // No request waits in the client for another request's answer.
    let connection = connections.find(({ isFree }) => isFree);
    if (!connection) {
      connection = await open(port, times);
      connections.push(connection);
    }
    connection.ask();
  }
  while (!connections.every(({ isFree }) => isFree)) await pause(10);
  for (const connection of connections) connection.close();
  return { times: times.slice(warmUps), connections: connections.length };
}

console.log(JSON.stringify(await Promise.all(ports.map(measure))));
