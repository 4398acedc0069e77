export { type EngineSettings, engineOptions } from "./options.ts";
export { createEngineServer, type EngineServer, serveEngine } from "./server.ts";
