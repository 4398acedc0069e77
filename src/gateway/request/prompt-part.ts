/** A piece of a prompt in reading order: what all dialects are brought down to. */
export type PromptPart =
  /** Begins a message; what follows is said in this role. */
  | { readonly kind: "turn"; readonly role: string }
  | { readonly kind: "text"; readonly text: string; readonly copies?: number }
  | { readonly kind: "tokens"; readonly ids: readonly number[] }
  /** An image, a sound, a video or a file; `source` is its data or address. */
  | { readonly kind: "media"; readonly source: string; readonly copies?: number }
  /** A shape that this balancer does not know. */
  | { readonly kind: "unknown" };
