export { type EngineOptions, type EngineOptionsSchema, type EngineSettings, engineOptions } from "./options.ts";
export { createEngineServer, type EngineAddress, type EngineServer, serveEngine } from "./server.ts";
