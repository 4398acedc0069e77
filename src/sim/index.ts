export { EngineModel, type EngineRequest } from "./engine-model.ts";
export { BLOCK_TOKENS, ENGINE_PROFILES, type EngineProfile, engineProfile } from "./engine-profiles.ts";
