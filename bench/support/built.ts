import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ROOT } from "./install.ts";

/** The layers of the program that benchmarks call, by name. */
export interface Layers {
  readonly core: typeof import("../../src/core/index.ts");
  readonly gateway: typeof import("../../src/gateway/index.ts");
}

/** A layer as built, without what running TypeScript directly adds. */
export function builtLayer<Name extends keyof Layers>(name: Name): Promise<Layers[Name]> {
  return import(pathToFileURL(join(ROOT, "dist", name, "index.js")).href);
}
