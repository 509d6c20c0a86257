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
  createAnswers: CreateAnswers
}

/** Returns the answers of a browser with this user agent to the challenges of its document. */
export type CreateAnswers = (userAgent: string, opened: OpenedSession) => ProofAnswers

/**
 * Sends all requests of a session. `continuity` is the token from the visitor's previous session. The result has the token
 * for the next one.
 */
export async function sendSession(plan: SessionPlan, target: SessionTarget, continuity?: string) {
  const publishableKey = target.publishableKeys[plan.client]
  if (!publishableKey) throw new Error(`no publishable key for ${plan.client} clients`)
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
  let nextContinuity: string | undefined
  for (const batch of plan.batches) {
    const { fingerprint } = await client.sendBatch(withProofs(batch, opened, target.createAnswers))
    nextContinuity = fingerprint?.state.id ?? nextContinuity
  }
  await client.requestResult(plan.closing)
  return { sessionId: opened.sessionId, continuity: nextContinuity }
}

function withProofs(
  batch: PlannedObservations,
  opened: OpenedSession,
  createAnswers: CreateAnswers,
): SentObservations {
  if (!batch.snapshot) return batch
  const proofs = createAnswers(batch.snapshot.navigator.user_agent ?? '', opened)
  return { ...batch, snapshot: { ...batch.snapshot, proofs } }
}
