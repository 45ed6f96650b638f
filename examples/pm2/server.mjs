// The app of ecosystem.config.cjs: an HTTP server without code for CPUs.
import { createServer } from 'node:http';

const { PORT = '8080', NODE_APP_INSTANCE, NUMALIGN_CPUS } = process.env;

const server = createServer((_, response) => {
  response.setHeader('content-type', 'application/json');
  const { pid } = process;
  response.end(`${JSON.stringify({ instance: NODE_APP_INSTANCE, pid, cpus: NUMALIGN_CPUS })}\n`);
});
server.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`instance ${NODE_APP_INSTANCE} on CPU ${NUMALIGN_CPUS}`),
);

// PM2 sends SIGINT before it kills.
process.once('SIGINT', () => {
  server.close(() => process.exit());
  server.closeIdleConnections();
});
