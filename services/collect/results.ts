import { derivedId } from '../../infra/ids.ts'
import { resultText } from '../../infra/wire/collect/constants.ts'
import type { ResultResponse } from '../../infra/wire/collect/messages.ts'
import { acceptBody, nextNonce, type OpenedBody, responseHmac } from './accept.ts'
import { metaOf, receivedBody } from './body-events.ts'
import { type BodyRequest, readBodyRequest } from './body-request.ts'
import type { CollectDeps } from './deps.ts'
import type { DocumentCache, DocumentState, TakenBody } from './documents.ts'

interface ResultOptions {
  deps: CollectDeps
  cache: DocumentCache
}

/** Takes the last observations and resolves with the sealed token as JSON once the session's decision is there. */
export function receiveResult(request: BodyRequest, { deps, cache }: ResultOptions): Promise<string> {
  const now = deps.clock()
  const { state, incoming } = readBodyRequest(request, { deps, cache, kind: 'results', now })
  return acceptBody(state, incoming, {
    now,
    store: async (opened) => {
      // What could not be handed off is not taken: the client may use its nonce for another body.
      await deps.checkRecipients(state.scope)
      await deps.log.append([resultRecord(request, { deps, state, opened })])
    },
    answer: async (taken) => JSON.stringify(await handOff(state, taken, deps)),
  })
}

/** A retry of the same bytes, on any node, asks for the same decision. */
function idsOf({ documentIdHash }: DocumentState, { seq, bodyHash }: TakenBody) {
  const eventId = derivedId('res', documentIdHash, String(seq), bodyHash)
  return { eventId, decisionId: derivedId('evt', eventId) }
}

function resultRecord(
  request: BodyRequest,
  { deps, state, opened }: { deps: CollectDeps; state: DocumentState; opened: OpenedBody },
) {
  const { eventId, decisionId } = idsOf(state, opened)
  const data = { ...receivedBody({ request, state, opened, eventId }), decision_id: decisionId }
  const meta = metaOf(state, { eventId, time: opened.receivedAt })
  return deps.codec.toRecord({ type: 'ResultRequested', data }, meta)
}

async function handOff(state: DocumentState, taken: TakenBody, deps: CollectDeps): Promise<ResultResponse> {
  const { sessionId, organizationId, environment } = state.scope
  const { decisionId } = idsOf(state, taken)
  const sealedToken = await deps.sealResult({ decisionId, sessionId, organizationId, environment })
  const nonce = nextNonce(state, taken)
  const text = resultText({ sessionId, sealedToken }, { seq: taken.seq, nonce })
  return { sessionId, sealedToken, nonce, integrity: { responseHmac: responseHmac(state, text) } }
}
