// Log: messages for the node's operator.

/** One line per message; `facts` are for machines. */
export type Log = (
  level: 'info' | 'warn' | 'error',
  message: string,
  facts?: Record<string, unknown>,
) => void;
