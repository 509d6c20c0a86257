import { deflateRawSync } from 'node:zlib'
import {
  type CollectClient,
  createCollectClient,
  type OpenedSession,
} from '../../../infra/wire/collect/client.ts'
import { nodeClientCrypto } from '../../../infra/wire/collect/node-client-crypto.ts'
import type { SentObservations } from '../../../schemas/observations.ts'
import type { ClientKeys } from './client-keys.ts'
import type { ProofAnswers } from './generate/answers.ts'
import { headersOf } from './generate/headers.ts'
import type { PlannedObservations, SessionPlan } from './generate/plan.ts'
import type { HttpClient } from './http.ts'
import { type Lane, recordingFetch } from './recorder.ts'

export interface SessionTarget extends Lane {
  baseUrl: string
  publishableKeys: ClientKeys
  http: HttpClient
  answers: Answering
}

/** What a session answers its document, in the name of a browser with this user agent. */
export type Answering = (userAgent: string, opened: OpenedSession) => ProofAnswers

export interface FinishedSession {
  sessionId: string
  continuity: string | undefined
}

export async function sendSession(
  plan: SessionPlan,
  { baseUrl, publishableKeys, http, recording, pacer, answers }: SessionTarget,
  continuity?: string,
): Promise<FinishedSession> {
  const publishableKey = publishableKeys[plan.client]
  if (!publishableKey) throw new Error(`there is no publishable key for ${plan.client}`)
  const client = createCollectClient({
    endpoint: baseUrl,
    publishableKey,
    fetch: recordingFetch({ http, recording, pacer, headers: headersOf(plan) }),
    sdk: plan.sdk,
    page: plan.page,
    crypto: nodeClientCrypto,
    deflate: (bytes) => deflateRawSync(bytes),
    ...(continuity ? { continuity } : {}),
  })
  const opened = await client.open()
  const answered = plan.batches.map((batch) => withProofs(batch, { opened, answers }))
  const handedOut = await sendBatches(client, answered)
  await client.requestResult(plan.closing)
  return { sessionId: opened.sessionId, continuity: handedOut }
}

async function sendBatches(client: CollectClient, batches: SentObservations[]) {
  let continuity: string | undefined
  for (const batch of batches) {
    const { fingerprint } = await client.sendBatch(batch)
    continuity = fingerprint?.state.id ?? continuity
  }
  return continuity
}

interface Proving extends Pick<SessionTarget, 'answers'> {
  opened: OpenedSession
}

function withProofs(batch: PlannedObservations, { opened, answers }: Proving): SentObservations {
  if (!batch.snapshot) return batch
  const proofs = answers(batch.snapshot.navigator.user_agent ?? '', opened)
  return { ...batch, snapshot: { ...batch.snapshot, proofs } }
}
