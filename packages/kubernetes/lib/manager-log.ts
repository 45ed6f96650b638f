// ManagerLog: what the manager finds out by itself, for the node's operator.
import type { Manager, StateChange } from 'numalign';
import type { Log } from './base/log.js';
import { type RecordEvent, THIS_NODE } from './events/event.js';

/** Logs its warnings and errors until the function that it returns is called. */
export function logManager(manager: Manager, log: Log, recordEvent: RecordEvent): () => void {
  const warn = ({ code, message }: { readonly code: string; readonly message: string }) =>
    log('warn', message, { code });
  manager.warnings.forEach(warn);
  // It repeats an error at each look.
  let last = '';
  const onError = (error: Error & { readonly code?: string }) => {
    if (error.message !== last) log('error', error.message, { code: error.code });
    last = error.message;
  };
  const onChange = ({ recovered }: StateChange) => {
    last = '';
    for (const recovery of recovered) {
      warn(recovery);
      recordEvent({ about: THIS_NODE, type: 'Warning', reason: 'StateRecovered', message: recovery.message });
    }
  };
  manager.on('error', onError);
  manager.on('change', onChange);
  return () => {
    manager.off('error', onError);
    manager.off('change', onChange);
  };
}
