/** Connections to jump hosts: one for all that pass the same way, closed when the last of them closes. */
import { P4Error } from '../../protocol/errors.ts';
import { openLink, type Link, type LinkOrder } from './link.ts';
import { routeKey, type Hop } from './route.ts';

/** The way to a machine's own door: the last link before it, `null` for a direct one. */
export interface Way {
  readonly over: Link | null;
  /** Has to be called once. */
  readonly release: () => Promise<void>;
}

interface Shared {
  readonly opening: Promise<{ readonly link: Link; readonly before: Way }>;
  users: number;
}

type LinkNeeds = Omit<LinkOrder, 'hop' | 'over'>;

export class LinkPool {
  readonly #shared = new Map<string, Shared>();

  /**
   * @param hops the machines to pass, in order; may be empty
   * @throws as `openLink` does, of the machine that could not be passed
   */
  async take(hops: readonly Hop[], needs: LinkNeeds): Promise<Way> {
    const last = hops.at(-1);
    if (last === undefined) return { over: null, release: () => Promise.resolve() };
    const key = routeKey(hops);
    const shared = this.#shared.get(key) ?? this.#open(hops, last, needs);
    shared.users++;
    try {
      const { link } = await shared.opening;
      return { over: link, release: () => this.#release(key, shared) };
    } catch (error) {
      if (this.#shared.get(key) === shared) this.#shared.delete(key);
      throw error instanceof P4Error ? jumpFailure(error, last) : error;
    }
  }

  #open(hops: readonly Hop[], last: Hop, needs: LinkNeeds): Shared {
    const key = routeKey(hops);
    const shared: Shared = { opening: this.#opened(hops, last, needs), users: 0 };
    this.#shared.set(key, shared);
    shared.opening.then(
      ({ link }) => {
        // One that is gone is opened anew for whoever comes next.
        link.gone.addEventListener('abort', () => {
          if (this.#shared.get(key) === shared) this.#shared.delete(key);
        });
      },
      () => undefined,
    );
    return shared;
  }

  async #opened(hops: readonly Hop[], last: Hop, needs: LinkNeeds): Promise<{ link: Link; before: Way }> {
    const before = await this.take(hops.slice(0, -1), needs);
    try {
      return { link: await openLink({ ...needs, hop: last, over: before.over }), before };
    } catch (error) {
      await before.release();
      throw error;
    }
  }

  async #release(key: string, shared: Shared): Promise<void> {
    shared.users--;
    if (shared.users > 0) return;
    if (this.#shared.get(key) === shared) this.#shared.delete(key);
    const { link, before } = await shared.opening;
    await link.end();
    await before.release();
  }
}

/** The error of a jump host says that it is one. */
const jumpFailure = (error: P4Error, hop: Hop): P4Error =>
  error.facts['host'] === hop.label && error.facts['role'] === undefined
    ? new P4Error(error.code, { ...error.facts, role: 'jump host' }, error)
    : error;
