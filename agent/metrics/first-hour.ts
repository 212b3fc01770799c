/** How fast a ring decoded in the first hour of its load, by level: what its later speed can be compared with. */
import { limits } from '../../protocol/limits.ts';
import { stretchBetween, withStretch, type SpeedReading, type SpeedStretch } from '../../protocol/speed-level.ts';

export class FirstHour {
  #before: SpeedReading | null = null;
  /** One of each level, added up. */
  #stretches: readonly SpeedStretch[] = [];

  /** Whether something was decoded since the latest look. */
  isNews(interTokens: number): boolean {
    return this.#before?.interTokens !== interTokens;
  }

  /** Called from time to time while the hour lasts: what lies between two calls counts as one level. */
  look(reading: SpeedReading): void {
    const stretch = this.#before === null ? null : stretchBetween(this.#before, reading);
    this.#before = reading;
    if (stretch !== null) this.#stretches = withStretch(this.#stretches, stretch);
  }

  /** Those of which enough was seen to say how fast they were. */
  get known(): readonly SpeedStretch[] {
    return this.#stretches.filter(({ tokens }) => tokens >= limits.speedLeastTokens);
  }
}
