import { X509Certificate } from "node:crypto";
import type { Config, Runtime } from "../runtime/index.ts";

/** Says what of the TLS in force works and should not stay as it is. Called at the start and after each reload. */
export function warnOfTls({ config, log }: Pick<Runtime, "config" | "log">, nowMs: number = Date.now()): void {
  for (const { cert, ...owner } of ownCertificates(config)) {
    const { validFrom, validTo } = new X509Certificate(cert);
    const isValid = Date.parse(validFrom) <= nowMs && nowMs < Date.parse(validTo);
    if (!isValid) log.warn({ ...owner, validFrom, validTo }, "certificate is not valid now: most will refuse it");
  }
  for (const { name, endpoints } of config.pools) {
    for (const { id, tls } of endpoints) {
      if (tls?.isVerified === false) log.warn({ pool: name, endpoint: id }, "endpoint is not verified: any will do");
    }
  }
}

/** What the balancer shows others, and whom. */
function* ownCertificates({ tls, pools }: Config): Iterable<{ cert: string; pool?: string; endpoint?: string }> {
  if (tls !== undefined) yield { cert: tls.cert };
  for (const { name, endpoints } of pools) {
    for (const { id, tls } of endpoints)
      if (tls?.cert !== undefined) yield { cert: tls.cert, pool: name, endpoint: id };
  }
}
