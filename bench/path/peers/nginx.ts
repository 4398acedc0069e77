import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { debianProgram } from "../../support/install.ts";
import type { Peer, Site } from "../peer.ts";

export const nginx: Peer = {
  name: "nginx",
  settings: "1 worker, least_conn, HTTP/1.1 to origins, keepalive 512, buffering off, no access log",
  async install() {
    const { stderr } = spawnSync(await debianProgram("nginx", "nginx-light"), ["-v"], { encoding: "utf8" });
    return /nginx\/(\S+)/.exec(stderr)?.[1] ?? "unknown";
  },
  async prepare(site) {
    const file = join(site.directory, "nginx.conf");
    await writeFile(file, configuration(site));
    const program = await debianProgram("nginx", "nginx-light");
    return { file: program, args: ["-p", site.directory, "-c", file, "-e", "stderr"] };
  },
};

/** Its limits on requests per connection would only make it connect anew: they are lifted. */
function configuration({ port, originPorts, directory }: Site): string {
  return `
daemon off;
user ${userInfo().username};
worker_processes 1;
pid ${directory}/nginx.pid;
error_log stderr warn;
events { worker_connections 32768; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  keepalive_requests 100000000;
  upstream origins {
    least_conn;
${originPorts.map((origin) => `    server 127.0.0.1:${origin};`).join("\n")}
    keepalive 512;
    keepalive_requests 100000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://origins;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 600s;
    }
  }
}
`;
}
