import { deflateRawSync } from 'node:zlib'
import { createCollectClient, type OpenedSession } from '../../../infra/wire/collect/client.ts'
import { nodeClientCrypto } from '../../../infra/wire/collect/node-client-crypto.ts'
import type { SentObservations } from '../../../schemas/observations.ts'
import type { ClientKeys } from './client-keys.ts'
import type { ProofAnswers } from './generate/answers.ts'
import { headersOf } from './generate/headers.ts'
import type { PlannedObservations, SessionPlan } from './generate/plan.ts'
import type { HttpClient } from './http.ts'
import { type PacedRecording, recordingFetch } from './recorder.ts'

export interface SessionTarget extends PacedRecording {
  baseUrl: string
  publishableKeys: ClientKeys
  http: HttpClient
  answers: Answering
}

/** What a session answers its document, in the name of a browser with this user agent. */
export type Answering = (userAgent: string, opened: OpenedSession) => ProofAnswers

/** Sends one session whole. `continuity` is the token that its visitor got last time; the result has the new one. */
export async function sendSession(plan: SessionPlan, target: SessionTarget, continuity?: string) {
  const publishableKey = target.publishableKeys[plan.client]
  if (!publishableKey) throw new Error(`there is no publishable key for ${plan.client}`)
  const client = createCollectClient({
    endpoint: target.baseUrl,
    publishableKey,
    fetch: recordingFetch(target, headersOf(plan)),
    sdk: plan.sdk,
    page: plan.page,
    crypto: nodeClientCrypto,
    deflate: (bytes) => deflateRawSync(bytes),
    ...(continuity ? { continuity } : {}),
  })
  const opened = await client.open()
  let next: string | undefined
  for (const batch of plan.batches) {
    const answer = await client.sendBatch(withProofs(batch, opened, target.answers))
    next = answer.fingerprint?.state.id ?? next
  }
  await client.requestResult(plan.closing)
  return { sessionId: opened.sessionId, continuity: next }
}

function withProofs(
  batch: PlannedObservations,
  opened: OpenedSession,
  answers: Answering,
): SentObservations {
  if (!batch.snapshot) return batch
  const proofs = answers(batch.snapshot.navigator.user_agent ?? '', opened)
  return { ...batch, snapshot: { ...batch.snapshot, proofs } }
}
