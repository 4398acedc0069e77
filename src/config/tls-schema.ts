import { readFileSync } from "node:fs";
import { z } from "zod";
import { certificatesIn, isPrivateKey, pairProblem } from "./certificate.ts";
import type { EndpointTls, ListenerTls } from "./config.ts";
import { Secret } from "./secret.ts";

/** The text of a PEM file that holds what it should, read when the configuration is. */
function pemFile(what: string, holdsIt: (text: string) => boolean): z.ZodType<string, string> {
  return z
    .string()
    .transform((path, context) => {
      const text = textOf(path);
      if (text !== undefined && holdsIt(text)) return text;
      context.addIssue({ code: "custom", message: text === undefined ? "a file that can be read" : what });
      return z.NEVER;
    })
    .meta({ value: "path" });
}

const certificateFile = pemFile(
  "a file in PEM with certificates, each of them whole",
  (text) => certificatesIn(text) !== undefined,
);
const keyFile: z.ZodType<Secret, string> = pemFile(
  "a file in PEM with one private key, without a passphrase",
  isPrivateKey,
)
  .transform((text) => new Secret(text))
  .meta({ value: "path" });

const TOGETHER = "`cert` and `key` together";

/** How one endpoint is spoken to over TLS. */
export const endpointTls: z.ZodType<EndpointTls> = z
  .strictObject({
    ca: certificateFile.optional().describe("Authority that signed its certificate; absent: the system's."),
    cert: certificateFile.optional().describe("Certificate the balancer shows it; with `key`."),
    key: keyFile.optional().describe("Key of that certificate."),
    serverName: z
      .string()
      .min(1)
      .optional()
      .describe("Name its certificate must have; absent: the host of its URL.")
      .meta({ value: "name" }),
    insecure: z.boolean().default(false).describe("`true`: any certificate will do. For tests only."),
  })
  .superRefine(checkPair)
  .transform(({ ca, cert, key, serverName, insecure }) => ({ ca, cert, key, serverName, isVerified: !insecure }));

/** TLS towards clients; without a certificate there is none. */
export const listenerTls: z.ZodType<ListenerTls | undefined> = z
  .strictObject({
    cert: certificateFile.optional().describe("Certificate shown to clients, with its chain; absent: no TLS."),
    key: keyFile.optional().describe("Key of that certificate."),
    clientCa: certificateFile
      .optional()
      .describe("Authority that must have signed the clients' certificates; absent: none needed."),
  })
  .prefault({})
  .superRefine(checkPair)
  .transform(({ cert, key, clientCa }, context): ListenerTls | undefined => {
    if (cert !== undefined && key !== undefined) return { cert, key, clientCa };
    if (clientCa === undefined) return undefined;
    context.addIssue({ code: "custom", message: TOGETHER });
    return z.NEVER;
  })
  .describe("TLS towards clients.");

/** Found when the configuration is read, not when the first connection fails by it. */
function checkPair(
  { cert, key }: { readonly cert?: string | undefined; readonly key?: Secret | undefined },
  context: z.core.$RefinementCtx,
): void {
  if ((cert === undefined) !== (key === undefined)) context.addIssue({ code: "custom", message: TOGETHER });
  if (cert === undefined || key === undefined) return;
  const problem = pairProblem({ cert, key });
  if (problem === undefined) return;
  context.addIssue({ code: "custom", path: [problem.setting], message: problem.expected });
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
