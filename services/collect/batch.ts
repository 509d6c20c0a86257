import { derivedId } from '../../infra/ids.ts'
import { fingerprintText } from '../../infra/wire/collect/constants.ts'
import type { BatchResponse, Fingerprint } from '../../infra/wire/collect/messages.ts'
import { acceptBody, nextNonce, type OpenedBody, responseHmac } from './accept.ts'
import { metaOf, receivedBody } from './body-events.ts'
import { type BodyRequest, readBodyRequest } from './body-request.ts'
import type { CollectDeps } from './deps.ts'
import type { DocumentCache, DocumentState, TakenBody } from './documents.ts'
import { sealContinuity } from './sealed-ids.ts'

interface BatchOptions {
  deps: CollectDeps
  cache: DocumentCache
}

/** Takes an observation batch; resolves with the acknowledgement as JSON once the batch is durable. */
export function receiveBatch(request: BodyRequest, { deps, cache }: BatchOptions): Promise<string> {
  const now = deps.clock()
  const { state, incoming } = readBodyRequest(request, { deps, cache, kind: 'batches', now })
  return acceptBody(state, incoming, {
    now,
    store: (opened) => deps.log.append([batchRecord(request, { deps, state, opened })]),
    answer: (taken) => JSON.stringify(acknowledge(state, taken, deps)),
  })
}

function batchRecord(
  request: BodyRequest,
  { deps, state, opened }: { deps: CollectDeps; state: DocumentState; opened: OpenedBody },
) {
  const eventId = derivedId('bat', state.documentIdHash, String(opened.seq), opened.bodyHash)
  const data = receivedBody({ request, state, opened, eventId })
  const meta = metaOf(state, { eventId, time: opened.receivedAt })
  return deps.codec.toRecord({ type: 'BatchReceived', data }, meta)
}

function acknowledge(state: DocumentState, taken: TakenBody, deps: CollectDeps): BatchResponse {
  const nonce = nextNonce(state, taken)
  return {
    ack: true,
    nonce,
    seq: taken.seq,
    ...(taken.noBatchYet ? { fingerprint: fingerprintOf(state, { taken, nonce, deps }) } : {}),
    next: { intervalMs: deps.batchIntervalMs ?? 2000 },
  }
}

function fingerprintOf(
  state: DocumentState,
  { taken, nonce, deps }: { taken: TakenBody; nonce: string; deps: CollectDeps },
): Fingerprint {
  const { sessionId } = state.scope
  const timestamp = taken.receivedAt
  const stateId = sealContinuity(state.facts.continuityId, state.scope, deps)
  const text = fingerprintText({ sessionId, stateId, timestamp }, { seq: taken.seq, nonce })
  return {
    ready: true,
    timestamp,
    sessionId,
    state: { id: stateId },
    integrity: { responseHmac: responseHmac(state, text) },
  }
}
