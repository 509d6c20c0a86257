import { createHash } from 'node:crypto'
import { asId } from '../../infra/ids.ts'
import { createCollectClient, type FetchLike } from '../../infra/wire/collect/client.ts'
import type { SimulationKey } from '../../infra/wire/collect/simulation.ts'
import { consentUrl } from '../../infra/wire/gate.ts'
import { simulatedAnswers } from '../../services/cli/simulate/generate/answers.ts'
import { headersOf } from '../../services/cli/simulate/generate/headers.ts'
import { planSession, type SessionPlan } from '../../services/cli/simulate/generate/plan.ts'

export interface ProofOptions {
  /** Where the server listens. */
  baseUrl: string
  /** What it calls itself; default: the same. Servers that share a database need one PUBLIC_URL. */
  publicUrl?: string
  gateSessionId: string
  /** The one that it is a proof for; default: none. */
  approveToken?: string
  /** Of the consent page; default: the one that the page has. */
  publishableKey?: string
  /** The same seed is the same person. */
  seed?: string
  /** Of a server that `tidegate dev` started; without it the person is inconclusive at best. */
  simulationKey?: SimulationKey | undefined
  /** Sent with each request, beside those of the person's browser. */
  headers?: Record<string, string> | undefined
}

export interface ConsentProof {
  sealedToken: string
  /** sid_... of the consent page. */
  sessionId: string
}

/**
 * What the consent page gets from its own collect session, without a browser: the reference client reports a person's
 * device and movements from the address of the page. It is a script, so that approvals with it need the account's name.
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

/** As the SDK makes it of what a hand-off is asked for with. */
export function bindingOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Sends what a browser of that page adds by itself. */
function fetchWith(headers: Record<string, string>): FetchLike {
  return (url, request) => fetch(url, { ...request, headers: { ...request.headers, ...headers } })
}

function person(seed: string): SessionPlan {
  return planSession(seed, 0, { clients: { web: 1, ios: 0, android: 0 }, bots: 0, returning: 0 })
}

/** The publishable key in the consent page's HTML. */
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
