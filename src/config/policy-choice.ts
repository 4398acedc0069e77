import { z } from "zod";
import type { PolicyDefinition } from "../core/index.ts";
import type { PolicyConfig } from "./config.ts";

/** Schema of a policy in the configuration: its name, or a mapping of the name and the policy's own options. */
export function policyChoice(policies: readonly PolicyDefinition[]): z.ZodType<PolicyConfig> {
  const [first, ...others] = policies.map(withName);
  if (first === undefined) throw new RangeError("there is no policy to choose from");
  const mapping = z.discriminatedUnion("name", [first, ...others]).transform(separateName);
  const name = z.enum(policies.map((policy) => policy.name)).transform((name) => ({ name }));
  return z.union([name.pipe(mapping), mapping]).meta({ value: "name" });
}

function withName({ name, summary, options }: PolicyDefinition): z.ZodObject<{ name: z.ZodLiteral<string> }> {
  if (!(options instanceof z.ZodObject)) throw new TypeError(`the options of policy ${name} are not an object schema`);
  return options
    .safeExtend({ name: z.literal(name) })
    .strict()
    .describe(summary);
}

function separateName({ name, ...options }: { readonly name: string }): PolicyConfig {
  return { name, options };
}
