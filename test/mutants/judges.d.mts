export const JUDGES: Readonly<Record<string, readonly string[]>>;
export const MACHINE_JUDGES: Readonly<Record<string, readonly string[]>>;
