// Expression: what an expression in the Common Expression Language consists of.

/** Whole numbers are bigints, others numbers. */
export type Literal = bigint | number | string | boolean | null;

export const BINARY_LEVELS = [
  ['||'],
  ['&&'],
  ['==', '!=', '<', '<=', '>', '>=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
] as const;
export type BinaryOperator = (typeof BINARY_LEVELS)[number][number];

export type Expression = { readonly at: number } & (
  | { readonly kind: 'literal'; readonly value: Literal }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'list'; readonly items: readonly Expression[] }
  | { readonly kind: 'member'; readonly of: Expression; readonly name: string }
  | { readonly kind: 'index'; readonly of: Expression; readonly index: Expression }
  | {
      readonly kind: 'call';
      /** The value whose method it is; null: a function. */
      readonly of: Expression | null;
      readonly name: string;
      readonly args: readonly Expression[];
    }
  | { readonly kind: 'unary'; readonly operator: '!' | '-'; readonly of: Expression }
  | {
      readonly kind: 'binary';
      readonly operator: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  /** A part of the language that is read only: `parts` are in it. */
  | { readonly kind: 'other'; readonly what: string; readonly parts: readonly Expression[] }
);
