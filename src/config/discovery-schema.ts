import { z } from "zod";
import type { DiscoverySource } from "./config.ts";
import { duration } from "./duration.ts";

const NAME = /^(?:(https?):\/\/)?([A-Za-z0-9._-]+):(\d{1,5})(\/[^\s?#]*)?$/;
const MAX_PORT = 65_535;

const expectedName = "name:port such as vllm.models.svc:8000, with https:// in front where it is TLS";

type DnsName = Pick<Extract<DiscoverySource, { readonly kind: "dns" }>, "host" | "port" | "scheme" | "basePath">;

const dnsName: z.ZodType<DnsName, string> = z
  .string({ error: expectedName })
  .transform((text, context): DnsName => {
    const [, scheme = "http", host, digits, path = ""] = NAME.exec(text) ?? [];
    const port = Number(digits);
    if (host !== undefined && port > 0 && port <= MAX_PORT) {
      return { host, port, scheme: scheme === "https" ? "https" : "http", basePath: path.replace(/\/+$/, "") };
    }
    context.addIssue({ code: "custom", message: expectedName });
    return z.NEVER;
  })
  .meta({ value: "name:port" });

/** Where endpoints are found that come and go. */
export const discoverySource: z.ZodType<DiscoverySource> = z
  .union([
    z
      .strictObject({
        file: z
          .string()
          .min(1)
          .describe("YAML or JSON file with a list of endpoints, read again when it changes.")
          .meta({ value: "path" }),
      })
      .transform(({ file }): DiscoverySource => ({ kind: "file", path: file })),
    z
      .strictObject({
        dns: dnsName.describe("Name whose every address is an endpoint."),
        interval: duration.prefault("10s").describe("Time between two look-ups."),
      })
      .transform(({ dns, interval }): DiscoverySource => ({ kind: "dns", ...dns, intervalMs: interval })),
  ])
  .meta({ value: "mapping" });
