export { MetricsTogether } from "./metrics-together.ts";
export { type RunningWorkers, startWorkers } from "./primary.ts";
export { WorkerError } from "./worker-process.ts";
