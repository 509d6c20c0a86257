import {
  type CollectClient,
  createCollectClient,
  type OpenedSession,
} from '../../../infra/wire/collect/client.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import type { PlannedObservations, SessionPlan } from './generate/plan.ts'
import type { HttpClient } from './http.ts'
import { type Lane, recordingFetch } from './recorder.ts'

export interface SessionTarget extends Lane {
  baseUrl: string
  publishableKey: string
  http: HttpClient
}

export interface FinishedSession {
  sessionId: string
  continuity: string | undefined
}

export async function sendSession(
  plan: SessionPlan,
  { baseUrl, publishableKey, http, recording, pacer }: SessionTarget,
  continuity?: string,
): Promise<FinishedSession> {
  const client = createCollectClient({
    endpoint: baseUrl,
    publishableKey,
    fetch: recordingFetch({ http, recording, pacer, headers: headersOf(plan) }),
    sdk: plan.sdk,
    page: plan.page,
    ...(continuity ? { continuity } : {}),
  })
  const opened = await client.open()
  const handedOut = await sendBatches(client, opened, plan.batches)
  await client.requestResult(plan.closing)
  return { sessionId: opened.sessionId, continuity: handedOut }
}

async function sendBatches(client: CollectClient, opened: OpenedSession, batches: PlannedObservations[]) {
  let continuity: string | undefined
  for (const batch of batches) {
    const { fingerprint } = await client.sendBatch(withProofs(batch, opened))
    continuity = fingerprint?.state.id ?? continuity
  }
  return continuity
}

/** Echoes what the server handed out with the document. Nothing is drawn here, so there is no canvas proof. */
function withProofs(batch: PlannedObservations, opened: OpenedSession): PlannedObservations {
  if (!batch.snapshot) return batch
  const proofs = {
    challenge: opened.challenge,
    timing_nonce: opened.timingNonce,
    canvas_challenge_hash: null,
  }
  return { ...batch, snapshot: { ...batch.snapshot, proofs } }
}

export function headersOf({ client, page, batches: [{ snapshot }] }: SessionPlan): Record<string, string> {
  const userAgent = { 'User-Agent': snapshot?.navigator.user_agent ?? 'unknown' }
  if (client !== 'web' || !snapshot) return userAgent
  return {
    ...userAgent,
    Origin: new URL(page.url).origin,
    Referer: page.url,
    'Accept-Language': acceptLanguage(snapshot.navigator.languages),
    ...clientHints(snapshot.navigator),
  }
}

function acceptLanguage(languages: string[]): string {
  return languages.map((language, i) => (i === 0 ? language : `${language};q=${1 - i / 10}`)).join(',')
}

function clientHints({
  brands,
  ua_data_mobile,
  ua_data_platform,
}: Snapshot['navigator']): Record<string, string> {
  if (brands.length === 0) return {}
  return {
    'Sec-CH-UA': brands.map(({ brand, version }) => `"${brand}";v="${version}"`).join(', '),
    'Sec-CH-UA-Mobile': ua_data_mobile ? '?1' : '?0',
    'Sec-CH-UA-Platform': `"${ua_data_platform}"`,
  }
}
