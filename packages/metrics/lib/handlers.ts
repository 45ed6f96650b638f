// What metrics do with each message of the diagnostics channels.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { DIAGNOSTICS_CHANNELS, type DiagnosticsMessages } from 'numalign/diagnostics';

type Step = keyof DiagnosticsMessages;

export type Handlers = { readonly [S in Step]?: (message: DiagnosticsMessages[S]) => void };

/** Answers how to end it. */
export function subscribeTo(handlers: Handlers, managerId: number): () => void {
  const ends = (Object.keys(handlers) as Step[]).map((step) => {
    const handle = handlers[step] as (message: unknown) => void;
    const onMessage = (message: unknown) => {
      if ((message as DiagnosticsMessages[typeof step]).managerId === managerId) handle(message);
    };
    subscribe(DIAGNOSTICS_CHANNELS[step], onMessage);
    return () => unsubscribe(DIAGNOSTICS_CHANNELS[step], onMessage);
  });
  return () => {
    for (const end of ends) end();
  };
}
