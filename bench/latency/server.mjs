// A worker of the scenario latency: an HTTP server whose every answer takes some work.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const payload = Buffer.alloc(16 * 1024, 1);

const server = createServer((_, response) => {
  const hash = createHash('sha256').update(payload).digest('hex');
  response.end(JSON.stringify({ hash }));
});
// Connections wait for the next time that they are needed.
server.keepAliveTimeout = 0;
server.listen(Number(process.env.PORT), '127.0.0.1');
