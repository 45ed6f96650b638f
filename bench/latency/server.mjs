// A worker of the scenario latency: an HTTP server that does some work for each answer.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const payload = Buffer.alloc(16 * 1024, 1);

const server = createServer((_, response) => {
  const hash = createHash('sha256').update(payload).digest('hex');
  response.end(JSON.stringify({ hash }));
});
// Connections wait for their next use.
server.keepAliveTimeout = 0;
server.listen(Number(process.env.PORT), '127.0.0.1');
