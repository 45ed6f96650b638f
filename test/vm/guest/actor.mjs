// A process that does what it is sent: functions of (numalign, mine, ...arguments), where `mine` is
// what it keeps between them.
import { runInThisContext } from 'node:vm';
import * as numalign from '../../../dist/index.js';

const mine = { grants: {} };
process.on('message', async ({ code, args }) => {
  try {
    const value = await runInThisContext(`(${code})`)(numalign, mine, ...args);
    process.send({ value: JSON.parse(JSON.stringify(value ?? null)) });
  } catch (error) {
    const { code: errorCode, message, details } = error;
    process.send({
      error: { code: errorCode, message, details: JSON.parse(JSON.stringify(details ?? null)) },
    });
  }
});
process.on('disconnect', () => process.exit());
