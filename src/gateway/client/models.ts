import type { Runtime } from "../../runtime/index.ts";

/** The models clients can ask for right now, in the shape of OpenAI's list; undefined: none is known yet. */
export function modelList(runtime: Runtime): object | undefined {
  const { names } = runtime.directory;
  if (names.length === 0) return undefined;
  return { object: "list", data: names.map(modelCard) };
}

/** One model's card; undefined: it is not served. */
export function modelByName(runtime: Runtime, name: string): object | undefined {
  return runtime.directory.names.includes(name) ? modelCard(name) : undefined;
}

/** `created` is required by the shape; the balancer did not make the models, so it is a constant. */
function modelCard(id: string): object {
  return { id, object: "model", created: 0, owned_by: "evenkeel" };
}
