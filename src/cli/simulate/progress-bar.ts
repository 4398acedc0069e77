/** What a bar is drawn on. */
export interface BarScreen {
  /** False: nothing is drawn, the text would end up in a file. */
  readonly isLive: boolean;
  write(text: string): void;
  nowMs(): number;
}

/** How far a number of runs is, as a line of text that is drawn over again. */
export class ProgressBar {
  readonly #screen: BarScreen;
  readonly #startedMs: number;
  readonly #shares = new Map<number, number>();
  #runs = 0;
  #done = 0;
  #drawnMs: number;
  #isDrawn = false;

  constructor(screen: BarScreen) {
    this.#screen = screen;
    this.#startedMs = screen.nowMs();
    this.#drawnMs = this.#startedMs + PATIENCE_MS - REDRAW_MS;
  }

  /** One run more. @returns what to tell its share to, 0 to 1. */
  add(): (share: number) => void {
    const run = this.#runs++;
    return (share) => {
      this.#shares.set(run, share);
      if (share >= 1) this.#done++;
      this.#draw();
    };
  }

  /** Wipes the line. */
  end(): void {
    if (this.#isDrawn) this.#screen.write(CLEAR_LINE);
    this.#isDrawn = false;
  }

  #draw(): void {
    const { isLive, write } = this.#screen;
    const nowMs = this.#screen.nowMs();
    if (!isLive || nowMs < this.#drawnMs + REDRAW_MS) return;
    this.#drawnMs = nowMs;
    this.#isDrawn = true;
    write.call(this.#screen, `${CLEAR_LINE}${this.#line(nowMs)}`);
  }

  #line(nowMs: number): string {
    const share = [...this.#shares.values()].reduce((sum, each) => sum + each, 0) / this.#runs;
    const full = Math.round(share * BAR_COLUMNS);
    const bar = `${"█".repeat(full)}${"░".repeat(BAR_COLUMNS - full)}`;
    const leftS = share > 0 ? ((nowMs - this.#startedMs) * (1 / share - 1)) / 1000 : 0;
    const runs = this.#runs === 1 ? "" : `  ${this.#done} of ${this.#runs} runs`;
    return `${bar}  ${(100 * share).toFixed(0).padStart(3)} %${runs}  ${shortTime(leftS)} left`;
  }
}

/** Whoever waits for less than that needs no bar. */
const PATIENCE_MS = 1_500;
const REDRAW_MS = 100;
const BAR_COLUMNS = 30;
const CLEAR_LINE = "\r\u001b[K";

function shortTime(seconds: number): string {
  return seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.round(seconds / 60)} min`;
}
