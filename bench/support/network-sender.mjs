// Sends small datagrams through the network interface of the default route, to the discard port of
// its gateway, until it is ended; [MILLISECONDS] limits the time.
import { createSocket } from 'node:dgram';
import { gateway } from './network-interrupts.mjs';

const AT_ONCE = 20;
const PAUSE_MS = 2;
const DISCARD_PORT = 9;

const end = performance.now() + Number(process.argv[2] ?? Number.POSITIVE_INFINITY);
const socket = createSocket('udp4').on('error', () => {});

function send() {
  if (performance.now() > end) return socket.close();
  for (let i = 0; i < AT_ONCE; i++) socket.send('x', () => {});
  setTimeout(send, PAUSE_MS);
}

socket.connect(DISCARD_PORT, gateway(), send);
