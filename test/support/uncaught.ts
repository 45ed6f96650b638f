// The uncaught exceptions of this process during a test, in place of vitest, which would fail.
import { onTestFinished } from 'vitest';

export function uncaught(event: 'uncaughtException' | 'unhandledRejection' = 'uncaughtException'): string[] {
  const seen: string[] = [];
  const note = ({ message }: Error) => void seen.push(message);
  const others = process.listeners(event as 'uncaughtException');
  process.removeAllListeners(event);
  process.on(event, note);
  onTestFinished(() => {
    process.off(event, note);
    for (const other of others) process.on(event, other);
  });
  return seen;
}
