/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What came of filling the variables into a text. */
export interface Interpolation {
  readonly text: string;
  /** Names of the variables that were used; empty: the text is as it was written. */
  readonly used: readonly string[];
  /** Variables without a value and without a default. */
  readonly missing: readonly string[];
  /** A `${` that begins no variable. */
  readonly isMalformed: boolean;
}

/** `$${`, which stands for itself; `${NAME}`; `${NAME:-default}`; or a `${` that is none of these. */
const REFERENCE = /\$(\$\{)|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}|\$\{/g;

/** Fills in `${NAME}` and `${NAME:-default}`; as in a shell, the default also stands for an empty value. `$${` is a plain `${`. */
export function interpolate(text: string, environment: Environment): Interpolation {
  const used: string[] = [];
  const missing: string[] = [];
  let isMalformed = false;
  const filled = text.replace(REFERENCE, (reference, escaped?: string, name?: string, fallback?: string) => {
    if (escaped !== undefined) return escaped;
    if (name === undefined) {
      isMalformed = true;
      return reference;
    }
    used.push(name);
    const value = environment[name];
    if (fallback !== undefined) return value === undefined || value === "" ? fallback : value;
    if (value === undefined) missing.push(name);
    return value ?? reference;
  });
  return { text: filled, used, missing, isMalformed };
}
