// Errors of this package.
export type NodeErrorCode = string;
/** `code` is literal, `value` is what was wrong, `valid` what would be right. */
export class NodeError extends Error {
  constructor(
    readonly code: NodeErrorCode,
    message: string,
    readonly details: { readonly value?: unknown; readonly valid?: unknown; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: details.cause });
    this.name = 'NodeError';
  }
}
