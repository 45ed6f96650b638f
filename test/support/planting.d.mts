export interface Edit {
  readonly file: string;
  readonly before: readonly string[];
  readonly after: string;
}

export function applyEdit(text: string, edit: Edit): string | undefined;
