/**
 * Undefined: it is no URL. In place of `URL.canParse`, which in Node 20 errs about text beyond ASCII once it was called
 * often enough to be compiled.
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
