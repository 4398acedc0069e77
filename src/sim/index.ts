export { EngineModel, type EngineModelOptions, type EngineObserver, type EngineRequest } from "./engine-model.ts";
export { BLOCK_TOKENS, ENGINE_PROFILES, type EngineProfile, engineProfile } from "./engine-profiles.ts";
export { KvCache } from "./kv-cache.ts";
export { type StepWork, stepMs } from "./step-time.ts";
