/** Keys from the root of the configuration to a setting. */
export type Path = readonly (string | number)[];

/** As people write it: `pools[0].endpoints[1].weight`; a key that is no plain name in quotes. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    if (!PLAIN_KEY.test(key)) return `${text}[${JSON.stringify(key)}]`;
    return text === "" ? key : `${text}.${key}`;
  }, "");
}

const PLAIN_KEY = /^[A-Za-z_][\w-]*$/;
