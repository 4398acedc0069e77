import { z } from "zod";
import { parseUrl } from "./parse-url.ts";

/** Where an endpoint is: its base URL without final slash, and the id it has unless another is configured. */
export interface EndpointLocation {
  readonly url: string;
  readonly id: string;
}

/** `http://host:port`, `https://host`, or `host:port`, which means http. */
export const endpointUrl: z.ZodType<EndpointLocation, string> = z
  .string({ error: "a URL such as http://10.0.0.7:8000" })
  .transform((text, context) => {
    const location = parseEndpointUrl(text);
    if (typeof location !== "string") return location;
    context.addIssue({ code: "custom", message: location });
    return z.NEVER;
  })
  .meta({ value: "url" });

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** The location, or what was expected instead. */
function parseEndpointUrl(text: string): EndpointLocation | string {
  const hasScheme = text.includes("://");
  if (!hasScheme && !HOST_AND_PORT.test(text)) return "an http:// or https:// URL, or host:port";
  if (!hasScheme && isBareIpv6(text)) return "an IPv6 address in brackets, such as http://[::1]:8000";

  const absolute = hasScheme ? text : `http://${text}`;
  const url = parseUrl(absolute);
  if (url === undefined) return "a URL such as http://10.0.0.7:8000 or http://[::1]:8000";
  const defaultPort = DEFAULT_PORTS[url.protocol];
  if (defaultPort === undefined) return "an http:// or https:// URL";
  if (url.username !== "" || url.password !== "") return "a URL without user name and password; a key goes into apiKey";
  if (url.search !== "" || url.hash !== "") return "a URL without query and fragment";
  if (url.port === "0") return "a port from 1 to 65535";

  const path = url.pathname.replace(/\/+$/, "");
  if (path.endsWith("/v1")) return "a base URL without /v1: requests bring their own path";
  return { url: `${url.origin}${path}`, id: `${url.hostname}:${url.port || defaultPort}${path}` };
}

/** Text without a scheme names its port: port 80 is too rare among inference servers to be guessed. */
const HOST_AND_PORT = /^[^/?#]+:\d+(\/[^?#]*)?$/;

function isBareIpv6(text: string): boolean {
  return text.split(":").length > 2 && !text.startsWith("[") && !text.includes("@");
}
