import { describe, expect, it } from "vitest";
import { ProgressBar } from "./progress-bar.ts";

/** A screen with a clock that a test sets. */
class Screen {
  isLive = true;
  atMs = 0;
  text = "";

  write(text: string): void {
    this.text += text;
  }

  nowMs(): number {
    return this.atMs;
  }
}

describe("ProgressBar", () => {
  it("shows nothing of what is over soon", () => {
    const screen = new Screen();
    const bar = new ProgressBar(screen);
    const tell = bar.add();
    screen.atMs = 1_000;
    tell(0.5);
    tell(1);
    bar.end();
    expect(screen.text).toBe("");
  });

  it("shows how far all runs are and how long it will take, and wipes itself away", () => {
    const screen = new Screen();
    const bar = new ProgressBar(screen);
    const [first, second] = [bar.add(), bar.add()];
    first(1);
    screen.atMs = 10_000;
    second(0.5);
    expect(screen.text).toMatch(/█+░+ {3}75 % {2}1 of 2 runs {2}4 s left$/);
    second(0.6);
    expect(screen.text.match(/left/g)).toHaveLength(1);
    bar.end();
    expect(screen.text.endsWith("\r\u001b[K")).toBe(true);
  });

  it("draws nothing into a file", () => {
    const screen = new Screen();
    screen.isLive = false;
    const tell = new ProgressBar(screen).add();
    screen.atMs = 60_000;
    tell(0.5);
    expect(screen.text).toBe("");
  });
});
