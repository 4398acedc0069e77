import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const { bin } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

/** The file that users run, as the package names it; `npm test` builds it first. */
export const PROGRAM: string = fileURLToPath(new URL(`../../${bin.evenkeel}`, import.meta.url));
