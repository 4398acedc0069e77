/** Models in the shape of OpenAI's list. */
export function modelList(names: readonly string[]): object {
  return { object: "list", data: names.map(modelCard) };
}

/**
 * `created` is required by the shape; the balancer did not make the models, so it is a constant. The owner is not that of
 * the built-in engine, for which a balancer in front of this one would take it.
 */
export function modelCard(id: string): object {
  return { id, object: "model", created: 0, owned_by: "evenkeel-balancer" };
}
