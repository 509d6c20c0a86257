import { createHash } from 'node:crypto'
import { asId } from '../../infra/ids.ts'
import { createCollectClient, type FetchLike } from '../../infra/wire/collect/client.ts'
import type { SimulationKey } from '../../infra/wire/collect/simulation.ts'
import { consentUrl } from '../../infra/wire/gate.ts'
import { simulatedAnswers } from '../../services/cli/simulate/generate/answers.ts'
import { headersOf } from '../../services/cli/simulate/generate/headers.ts'
import { planSession, type SessionPlan } from '../../services/cli/simulate/generate/plan.ts'

export interface ProofOptions {
  /** URL of the server. */
  baseUrl: string
  /** PUBLIC_URL of the server, which is the same for servers that share a database. Default: `baseUrl`. */
  publicUrl?: string
  gateSessionId: string
  /** Approve token to bind the proof to. Default: none. */
  approveToken?: string
  /** Publishable key of the consent page. Default: read from the page. */
  publishableKey?: string
  /** The same seed makes the same person. */
  seed?: string
  /** Simulation key of a server started by `tidegate dev`. Without it, the person is inconclusive at best. */
  simulationKey?: SimulationKey | undefined
  /** Headers to send in addition to those of the person's browser. */
  headers?: Record<string, string> | undefined
}

export interface ConsentProof {
  sealedToken: string
  /** Session of the consent page (sid_...). */
  sessionId: string
}

/**
 * Returns the proof that the consent page gets from its collect session. Uses the reference client instead of a
 * browser, with a person's device and input. As this is a script, approvals with the proof require the account's name.
 */
export async function consentProof(options: ProofOptions): Promise<ConsentProof> {
  const {
    baseUrl,
    publicUrl = baseUrl,
    gateSessionId,
    seed = gateSessionId,
    headers = {},
  } = options
  const url = consentUrl(publicUrl, asId('gate', gateSessionId))
  const plan: SessionPlan = { ...person(seed), page: { url, referrer: null } }
  const client = createCollectClient({
    endpoint: baseUrl,
    publishableKey: options.publishableKey ?? (await pageKey(baseUrl, gateSessionId, headers)),
    fetch: fetchWith({ ...headersOf(plan), ...headers }),
    sdk: plan.sdk,
    page: plan.page,
  })
  const opened = await client.open()
  for (const batch of plan.batches) {
    const { snapshot } = batch
    const proofs = simulatedAnswers(opened, options.simulationKey)
    await client.sendBatch(snapshot ? { ...batch, snapshot: { ...snapshot, proofs } } : batch)
  }
  const { approveToken } = options
  return client.requestResult({
    ...plan.closing,
    ...(approveToken === undefined ? {} : { binding: bindingOf(approveToken) }),
  })
}

/** Returns the SDK's binding of the text for a hand-off. */
export function bindingOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Returns a fetch that adds the headers that a browser sends. */
function fetchWith(headers: Record<string, string>): FetchLike {
  return (url, request) => fetch(url, { ...request, headers: { ...request.headers, ...headers } })
}

function person(seed: string): SessionPlan {
  return planSession(seed, 0, { clients: { web: 1, ios: 0, android: 0 }, bots: 0, returning: 0 })
}

/** Returns the publishable key in the consent page's HTML. */
export async function pageKey(
  baseUrl: string,
  gateSessionId: string,
  headers: Record<string, string> = {},
): Promise<string> {
  const page = await fetch(`${baseUrl}/gate/consent/${gateSessionId}`, { headers })
  const key = /\bpk_(?:live|test)_[0-9A-Za-z]+/.exec(await page.text())?.[0]
  if (!key) throw new Error(`the consent page (${page.status}) has no publishable key`)
  return key
}
