import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

function pagesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return folder === ROOT && entry.name !== "docs" ? [] : pagesIn(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

/** Targets of a page's relative links, without their anchors. */
function linksOf(page: string): string[] {
  const text = readFileSync(page, "utf8");
  return [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, target]) => target as string);
}

describe("documentation", () => {
  const pages = pagesIn(ROOT);

  it("is found where it is looked for", () => {
    expect(pages.map((page) => relative(ROOT, page))).toEqual(
      expect.arrayContaining(["README.md", "ARCHITECTURE.md", join("docs", "configuration.md")]),
    );
  });

  it.each(pages.map((page) => relative(ROOT, page)))("%s links only to files that exist", (name) => {
    const page = join(ROOT, name);
    expect(linksOf(page).filter((target) => !existsSync(join(dirname(page), target)))).toEqual([]);
  });
});
