import { decision } from "./decision.ts";
import { endpoints } from "./endpoints.ts";
import { idle } from "./idle.ts";
import { latency } from "./latency.ts";
import type { Measure } from "./measure.ts";
import { memory } from "./memory.ts";
import { path } from "./path.ts";
import { prompt } from "./prompt.ts";
import { start } from "./start.ts";
import { workers } from "./workers.ts";

/** Every measure, in the order of the table of targets, and then what several workers bring. */
export const MEASURES: readonly Measure[] = [path, latency, decision, prompt, idle, start, endpoints, memory, workers];
