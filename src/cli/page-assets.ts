import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { PAGE_FILES, type PageAssets } from "../sim/index.ts";

/** What a report's page carries inside itself, read from where this package and its dependencies are installed. */
export function readPageAssets(): PageAssets {
  const { resolve } = createRequire(import.meta.url);
  const report = new URL("../sim/report/", import.meta.url);
  return {
    plotJs: readFileSync(resolve("uplot/dist/uPlot.iife.min.js"), "utf8"),
    plotCss: readFileSync(resolve("uplot/dist/uPlot.min.css"), "utf8"),
    pageModules: PAGE_FILES.map((file) => readFileSync(new URL(file, report), "utf8")),
  };
}
