import { isIP, isIPv6 } from "node:net";
import { z } from "zod";
import type { ListenAddress } from "./config.ts";

const FORM = /^(?:\[([^[\]]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/;
const DIGITS_AND_DOTS = /^[\d.]+$/;
const MAX_PORT = 65_535;

const expected = "host:port such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080";

/** A TCP address to listen on; IPv6 in brackets. */
export const listenAddress: z.ZodType<ListenAddress, string> = z
  .string({ error: expected })
  .transform((text, context) => {
    const address = parseListenAddress(text);
    if (address !== undefined) return address;
    context.addIssue({ code: "custom", message: expected });
    return z.NEVER;
  })
  .meta({ value: "host:port" });

/** As it is written in a URL or a configuration: IPv6 back in its brackets. */
export function formatListenAddress({ host, port }: ListenAddress): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

function parseListenAddress(text: string): ListenAddress | undefined {
  const [, ipv6, name, digits] = FORM.exec(text) ?? [];
  const host = ipv6 ?? name;
  const port = Number(digits);
  if (host === undefined || port > MAX_PORT) return undefined;
  if (ipv6 !== undefined && !isIPv6(ipv6)) return undefined;
  if (DIGITS_AND_DOTS.test(host) && isIP(host) === 0) return undefined;
  return { host, port };
}
