// Listeners of the user's: they hear of something, and decide nothing.
import { type EventEmitter, errorMonitor } from 'node:events';

type Events<Map> = { [Event in keyof Map]: unknown[] };

/**
 * Calls all listeners of an event. What one of them throws is an uncaught exception, as in an
 * EventTarget, and neither the other listeners nor the caller notice. An `error` without listeners
 * throws nothing.
 */
export function callListeners<Map extends Events<Map>, Event extends keyof Map & string>(
  emitter: EventEmitter<Map>,
  event: Event,
  ...args: Map[Event]
): void {
  const plain = emitter as EventEmitter;
  // Node calls those that only watch errors first.
  const monitors = event === 'error' ? plain.rawListeners(errorMonitor) : [];
  for (const listener of [...monitors, ...plain.rawListeners(event)]) {
    try {
      Reflect.apply(listener, emitter, args);
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
    }
  }
}
