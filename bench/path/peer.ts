import type { Command } from "../support/managed-process.ts";

/** Where a peer is to listen and what it is to balance; everything is on 127.0.0.1. */
export interface Site {
  readonly port: number;
  /** For an admin listener, where the peer has one. */
  readonly adminPort: number;
  readonly originPorts: readonly number[];
  /** Exists and is empty; the peer's files go here. */
  readonly directory: string;
}

/** A proxy that is measured. One file each in `peers/`. */
export interface Peer {
  readonly name: string;
  /** How it is set up, as far as that bears on the figures. */
  readonly settings: string;
  /** Whether it knows what it balances; undefined: it balances any HTTP, or it is ours. */
  readonly isLlmRouter?: true;
  /** How its clients differ from the workload's; undefined: not at all. */
  readonly client?: Omit<ClientSettings, "headers">;
  /** Headers that it wants of every request; undefined: none. */
  headers?(site: Site): Readonly<Record<string, string>>;
  /** Installs it where it is missing. @returns its version. @throws when it cannot be had. */
  install(): Promise<string>;
  /** Writes what it needs into the site's directory. @returns the command that runs it in the foreground. */
  prepare(site: Site): Promise<Command>;
}

/** What a peer's clients are told. */
export interface ClientSettings {
  /** Connections of the request phase. */
  readonly connections: number;
  /** Streams of the event phase. */
  readonly streams: number;
  readonly headers: Readonly<Record<string, string>>;
}
