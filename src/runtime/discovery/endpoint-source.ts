import type { DiscoverySource, EndpointConfig } from "../../config/index.ts";
import type { Random } from "../../core/index.ts";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { Resolver } from "../resolver.ts";
import { DnsSource } from "./dns-source.ts";
import { FileSource } from "./file-source.ts";

/** Finds endpoints that come and go. What was found last counts while nothing new can be found out. */
export interface EndpointSource {
  start(): void;
  /** Resolves when no timer is left; nothing is found any more. May be called twice. */
  stop(): Promise<void>;
}

/** What a source needs of the process around it. */
export interface SourceSurroundings {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly resolver: Resolver;
}

/** @param found Is called with all endpoints there are, whenever they may have changed. */
export function createEndpointSource(
  source: DiscoverySource,
  surroundings: SourceSurroundings,
  found: (endpoints: readonly EndpointConfig[]) => void,
): EndpointSource {
  return source.kind === "file"
    ? new FileSource(source.path, surroundings, found)
    : new DnsSource(source, surroundings, found);
}

/** What makes a source the same one though its pace may change: where it looks. */
export function placeOf(source: DiscoverySource): string {
  if (source.kind === "file") return `file ${source.path}`;
  const { scheme, host, port, basePath } = source;
  return `dns ${scheme}://${host}:${port}${basePath}`;
}
