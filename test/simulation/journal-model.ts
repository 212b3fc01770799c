/**
 * An agent's journal as its disk has it: what is committed, in order. It outlives the agent and the machine.
 *
 * Checked at each commit: ids are used once and in order (E1), a request ends once and settles once (S3), and no token
 * comes twice, out of order, or after its request's end.
 */
import type { JournalRecord, LoadAdmitted, TokenEmitted } from '../../agent/records.ts';
import type { LoadId, RequestId, TokenId } from '../../protocol/ids.ts';
import type { FinishReason } from '../../protocol/finish.ts';
import { Violation } from './violation.ts';

export interface KeptRequest {
  readonly session: number;
  readonly tokens: TokenId[];
  ended: FinishReason | null;
  isSettled: boolean;
}

interface KeptLoad {
  readonly admitted: LoadAdmitted;
  readonly records: JournalRecord[];
  readonly requests: Map<RequestId, KeptRequest>;
  isEnded: boolean;
  lastSession: number;
  lastRequest: number;
}

export class JournalModel {
  readonly loads = new Map<LoadId, KeptLoad>();
  /** The disk takes nothing: each commit fails. */
  isFailing = false;

  /** Durable from here on. */
  add(records: readonly JournalRecord[]): void {
    for (const record of records) this.#addOne(record);
  }

  get standing(): readonly KeptLoad[] {
    return [...this.loads.values()].filter(({ isEnded }) => !isEnded);
  }

  request(load: LoadId, request: RequestId): KeptRequest | undefined {
    return this.loads.get(load)?.requests.get(request);
  }

  #addOne(record: JournalRecord): void {
    if (record.kind === 'load-admitted') this.#admit(record);
    else this.#addTo(this.#standing(record), record);
  }

  #admit(record: LoadAdmitted): void {
    const former = this.loads.get(record.load);
    // A load that failed here while another host kept it is told again; one that was used never is (E1).
    if (former !== undefined && (!former.isEnded || former.lastSession > 0)) {
      throw new Violation('G6', `load ${record.load} is admitted twice`);
    }
    const counts = { isEnded: false, lastSession: 0, lastRequest: 0 };
    this.loads.set(record.load, { admitted: record, records: [], requests: new Map(), ...counts });
  }

  #standing(record: JournalRecord): KeptLoad {
    const load = this.loads.get(record.load);
    if (load === undefined || load.isEnded) throw new Violation('J2', `${record.kind} of a load that does not stand`);
    load.records.push(record);
    return load;
  }

  #addTo(load: KeptLoad, record: Exclude<JournalRecord, LoadAdmitted>): void {
    switch (record.kind) {
      case 'session-opened':
        if (record.session <= load.lastSession) throw new Violation('E1', `session ${record.session} is used twice`);
        load.lastSession = record.session;
        return;
      case 'request-admitted':
        if (record.request <= load.lastRequest) throw new Violation('E1', `request ${record.request} is used twice`);
        load.lastRequest = record.request;
        load.requests.set(record.request, { session: record.session, tokens: [], ended: null, isSettled: false });
        return;
      case 'token-emitted':
        this.#token(load, record);
        return;
      case 'request-ended': {
        const request = this.#known(load, record.request);
        if (request.ended !== null) throw new Violation('S3', `request ${record.request} ends twice`);
        request.ended = record.reason;
        return;
      }
      case 'request-settled':
        this.#settle(load, record.request);
        return;
      case 'load-ended':
        load.isEnded = true;
        return;
      case 'load-told':
      case 'session-closed':
      case 'node-changed':
      case 'ring-ready':
      case 'ring-suspended':
    }
  }

  #settle(load: KeptLoad, id: RequestId): void {
    const request = this.#known(load, id);
    if (request.ended === null || request.isSettled) {
      throw new Violation('S3', `request ${id} is settled ${request.isSettled ? 'twice' : 'before its end'}`);
    }
    request.isSettled = true;
  }

  #token(load: KeptLoad, { request: id, index, token }: TokenEmitted): void {
    const request = this.#known(load, id);
    if (index !== request.tokens.length || request.ended !== null) {
      throw new Violation('E1', `token ${index} of request ${id} where ${request.tokens.length} is next`);
    }
    request.tokens.push(token);
  }

  #known(load: KeptLoad, id: RequestId): KeptRequest {
    const request = load.requests.get(id);
    if (request === undefined) throw new Violation('J2', `request ${id} was never admitted`);
    return request;
  }
}
