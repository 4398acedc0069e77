import { Command } from "commander";
import { parseUrl } from "../config/index.ts";
import { type AdminCall, callAdmin } from "./call-admin.ts";
import { EXIT, formatTable } from "./report.ts";
import type { Terminal } from "./terminal.ts";

interface EndpointsOptions {
  readonly admin: string;
  readonly pool?: string;
  readonly id?: string;
  readonly json?: true;
}

/** What `GET /admin/endpoints` says, as far as it is shown. */
interface Listing {
  readonly pools: readonly {
    readonly name: string;
    readonly endpoints: readonly ListedEndpoint[];
    readonly leavingEndpoints: readonly { readonly id: string; readonly url: string; readonly requests: number }[];
  }[];
}

interface ListedEndpoint {
  readonly id: string;
  readonly url: string;
  readonly availability: string;
  readonly isDraining: boolean;
  readonly weight: number;
  readonly work: { readonly requests: number; readonly heldRequests: number };
}

type Request = Omit<AdminCall, "admin">;

/** What can be done to an endpoint, `path` being its own; a sentence when the command line does not say enough. */
const ACTIONS: Readonly<Record<string, (path: string, value: string | undefined) => Request | string>> = {
  add: (path, url) => ({ method: "PUT", path, body: { url } }),
  remove: (path) => ({ method: "DELETE", path }),
  drain: (path) => ({ method: "POST", path: `${path}/drain` }),
  undrain: (path) => ({ method: "POST", path: `${path}/undrain` }),
  weight: (path, value) =>
    value === undefined || !Number.isFinite(Number(value))
      ? "weight expects an endpoint and a number"
      : { method: "PATCH", path, body: { weight: Number(value) } },
};

/** `evenkeel endpoints`: shows and changes the endpoints of a running balancer. @param done Takes the exit code. */
export function endpointsCommand(terminal: Terminal, done: (code: number) => void): Command {
  const command = new Command("endpoints")
    .summary("show and change the endpoints of a running balancer")
    .description("Shows the endpoints of a running balancer, or changes one until the balancer ends.")
    .argument("[action]", "list, add, remove, drain, undrain or weight", "list")
    .argument("[endpoint]", "id of the endpoint; URL of one to add")
    .argument("[value]", "the new weight")
    .option("--admin <url>", "Admin address of the balancer.", "http://127.0.0.1:9090")
    .option("--pool <name>", "Pool of the endpoint; may be left out where there is one pool.")
    .option("--id <id>", "Id of an endpoint to add; host and port of its URL unless given.")
    .option("--json", "Print the answer as JSON.")
    .addHelpText("after", EXAMPLES);
  command.action(async (action: string, endpoint?: string, value?: string) => {
    const answer = await perform(command.opts<EndpointsOptions>(), action, endpoint, value, terminal);
    if (answer.ok) terminal.write(answer.text);
    else terminal.writeError(`error: ${answer.text}\n`);
    done(answer.ok ? EXIT.ok : EXIT.failed);
  });
  return command;
}

const EXAMPLES = `
EVENKEEL_ADMIN_KEY holds the key, if the balancer asks for one.

Examples:
  evenkeel endpoints
  evenkeel endpoints drain 10.0.0.7:8000
  evenkeel endpoints weight 10.0.0.7:8000 0.5
  evenkeel endpoints add http://10.0.0.9:8000 --pool chat`;

interface Performed {
  readonly ok: boolean;
  readonly text: string;
}

async function perform(
  options: EndpointsOptions,
  action: string,
  endpoint: string | undefined,
  value: string | undefined,
  terminal: Terminal,
): Promise<Performed> {
  const { admin } = options;
  const listing = await callAdmin<Listing>({ admin, method: "GET", path: "/admin/endpoints" }, terminal);
  if (typeof listing === "string") return failed(listing);
  if (action === "list") return { ok: true, text: options.json ? inJson(listing) : tableOf(listing) };
  const request = requestOf(options, listing, action, endpoint, value);
  if (typeof request === "string") return failed(request);
  const answer = await callAdmin<object>({ admin, ...request }, terminal);
  if (typeof answer === "string") return failed(answer);
  return { ok: true, text: options.json ? inJson(answer) : sentenceOf(answer as ListedEndpoint & Removed) };
}

function requestOf(
  { pool: named, id }: EndpointsOptions,
  { pools }: Listing,
  action: string,
  endpoint: string | undefined,
  value: string | undefined,
): Request | string {
  const create = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (create === undefined) return `no action ${action}; there are list, ${Object.keys(ACTIONS).join(", ")}`;
  if (endpoint === undefined) return `${action} expects an endpoint`;
  const pool = named ?? (pools.length === 1 ? pools[0]?.name : undefined);
  if (pool === undefined) return `--pool expects one of ${pools.map(({ name }) => name).join(", ")}`;
  const isNew = action === "add";
  const name = isNew ? (id ?? parseUrl(endpoint)?.host) : endpoint;
  if (name === undefined) return "add expects a URL such as http://10.0.0.9:8000";
  return create(
    `/admin/pools/${encodeURIComponent(pool)}/endpoints/${encodeURIComponent(name)}`,
    isNew ? endpoint : value,
  );
}

function tableOf({ pools }: Listing): string {
  const rows = pools.flatMap(({ name, endpoints, leavingEndpoints }) => [
    ...endpoints.map((one) => [
      name,
      one.id,
      stateOf(one),
      one.weight,
      one.work.requests,
      one.work.heldRequests,
      one.url,
    ]),
    ...leavingEndpoints.map(({ id, url, requests }) => [name, id, "removed", "", requests, "", url]),
  ]);
  return formatTable(
    ["pool", "endpoint", "state", "weight", "requests", "held", "url"],
    rows.map((row) => row.map(String)),
  );
}

function stateOf({ availability, isDraining }: ListedEndpoint): string {
  return isDraining ? `${availability}, draining` : availability;
}

interface Removed {
  readonly removed?: string;
  readonly requests?: number;
}

function sentenceOf(answer: ListedEndpoint & Removed): string {
  if (answer.removed !== undefined)
    return `${answer.removed} is removed; ${answer.requests} requests still run there\n`;
  return `${answer.id} is ${stateOf(answer)}, weight ${answer.weight}, ${answer.work.requests} requests\n`;
}

function failed(text: string): Performed {
  return { ok: false, text };
}

function inJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
