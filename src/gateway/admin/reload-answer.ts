import type { ReloadReport } from "../../runtime/index.ts";
import { type AdminAnswer, invalid, json, refusal } from "./admin-answer.ts";

/** What `POST /admin/reload` is told. */
export function reloadAnswer(report: ReloadReport): AdminAnswer {
  switch (report.kind) {
    case "applied":
      return json(200, { result: report.kind, changed: report.changed });
    case "unchanged":
      return json(200, { result: report.kind });
    case "invalid":
      return invalid("the configuration cannot be used, the one of before stays in force", report.problems);
    case "needs_restart":
      return refusal(409, `these settings need a restart: ${report.settings.join(", ")}; nothing was changed`, {
        settings: report.settings,
      });
    case "no_source":
      return refusal(409, "this process was not told where its configuration comes from");
  }
}
