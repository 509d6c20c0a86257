import { openSecretHash } from '../../infra/crypto/api-keys.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { ApiError, unavailable } from '../../infra/errors/errors.ts'
import { createRowWaiter } from '../../infra/flow/row-waiter.ts'
import type { Clock, KeyId } from '../../infra/ids.ts'
import { createLru } from '../../infra/lru.ts'
import { maxRecipients } from '../../infra/wire/sealed-token.ts'
import {
  decisionJson,
  requestJson,
  scoreBreakdownJson,
  signalJson,
  visibleAttribution,
  visitorLinkJson,
} from '../../projections/sessions/decision-json.ts'
import type { FullDecisionRow } from '../../projections/sessions/tables.ts'
import type { HandOffRequest } from './requests.ts'
import type { Tenant } from './sealed-ids.ts'

interface SealerDeps {
  findDecisions: (decisionIds: string[]) => Promise<FullDecisionRow[]>
  /**
   * Subscribes to the ids of decisions that became readable, or undefined if any decision may have. Returns the
   * function that unsubscribes.
   */
  onDecided: (listener: (decisionIds: readonly string[] | undefined) => void) => () => void
  /** Returns the SHA-256 (lower-case hex) of every valid secret key of the organization and environment. */
  recipientHashes: (tenant: Tenant) => Promise<string[]>
  seal: (options: { payload: unknown; secretHashes: string[] }) => string
  /** Milliseconds to wait for a decision (default 2000). */
  timeoutMs?: number
  /** Milliseconds between queries while `onDecided` is silent (default 250). */
  pollMs?: number
}

export interface ResultSealer {
  /** Rejects with 409 if the organization has no valid secret key in the environment. */
  requireRecipients(tenant: Tenant): Promise<void>
  /** Waits for the decision and returns it as a sealed token. Rejects with 503 after `timeoutMs`. */
  sealResult(request: HandOffRequest): Promise<string>
  close(): void
}

export function createResultSealer(deps: SealerDeps): ResultSealer {
  const decisions = createDecisionWaiter(deps)
  async function requireRecipientHashes(tenant: Tenant): Promise<string[]> {
    const secretHashes = await deps.recipientHashes(tenant)
    if (secretHashes.length === 0) throw noRecipient()
    return secretHashes
  }

  return {
    close: decisions.close,
    async requireRecipients(tenant) {
      await requireRecipientHashes(tenant)
    },
    async sealResult(request) {
      const [decision, secretHashes] = await Promise.all([
        decisions.waitFor(request.decisionId),
        requireRecipientHashes(request),
      ])
      return deps.seal({
        payload: tokenPayload(decision),
        secretHashes: secretHashes.slice(0, maxRecipients),
      })
    },
  }
}

function noRecipient(): ApiError {
  return new ApiError('request.conflict', {
    message:
      'The organization has no secret key in this environment, so nobody could open the token. Create one.',
    details: { next_action: 'contact_support' },
  })
}

// All hand-offs in progress share one query at a time.
function createDecisionWaiter({ findDecisions, onDecided, timeoutMs = 2000, pollMs }: SealerDeps) {
  const onTimeout = (decisionId: string) => () =>
    Promise.reject(unavailable(new Error(`no decision ${decisionId} within ${timeoutMs} ms`)))
  const decisions = createRowWaiter<string, FullDecisionRow>({
    onAdvance: onDecided,
    // The decision is usually made after the request, so wait for the notification. A repeated request's decision
    // already exists and is not announced again; polling finds it.
    searchesImmediately: false,
    pollMs,
    find: (ids, found) =>
      findDecisions(ids).then((rows) => {
        for (const decision of rows) found(decision.event_id, decision)
      }),
  })
  return {
    waitFor: (decisionId: string) =>
      decisions.waitFor(decisionId, { timeoutMs, onTimeout: onTimeout(decisionId) }),
    close: decisions.close,
  }
}

export function tokenPayload(row: FullDecisionRow) {
  return {
    object: 'session_verification',
    session_id: row.session_id,
    decision: decisionJson(row),
    request: requestJson(row.request),
    visitor_fingerprint: row.visitor && visitorLinkJson(row.visitor),
    signals: riskSignals(row),
    score_breakdown: scoreBreakdownJson(row),
    attribution: visibleAttribution(row),
    agent: row.agent,
    // Kept for API compatibility: the payload of the token's test vectors has it.
    embed: null,
    ...(row.hand_off ? { hand_off: row.hand_off } : {}),
  }
}

// The token has only risk signals. Trust and context signals are in the REST response.
function riskSignals({ signals_fired }: FullDecisionRow) {
  return signals_fired.filter(({ role }) => role === 'risk').map(signalJson)
}

interface RecipientsOptions {
  findKeys: (tenant: Tenant) => Promise<{ keyId: KeyId; secretHashSealed: Buffer }[]>
  keyring: Keyring
  clock: Clock
}

// Bounds staleness if a change notification is lost.
const cacheMs = 5000

/** Creates a cache of the hashes of the secret keys that can open an organization's tokens, by environment. */
export function createRecipientCache({ findKeys, keyring, clock }: RecipientsOptions) {
  const cached = createLru<string, { hashes: Promise<string[]>; expiresAt: number }>(10_000)
  const idOf = ({ organizationId, environment }: Tenant) => `${organizationId}/${environment}`

  async function load(tenant: Tenant): Promise<string[]> {
    const keys = await findKeys(tenant)
    return keys.flatMap(
      ({ keyId, secretHashSealed }) => openSecretHash(secretHashSealed, { keyring, keyId }) ?? [],
    )
  }

  return {
    secretHashesOf(tenant: Tenant): Promise<string[]> {
      const id = idOf(tenant)
      const entry = cached.get(id)
      if (entry && clock() < entry.expiresAt) return entry.hashes
      const hashes = load(tenant)
      cached.set(id, { hashes, expiresAt: clock() + cacheMs })
      hashes.catch(() => cached.delete(id))
      return hashes
    },
    /** Drops the cached hashes of these organizations, or of all if undefined. */
    forget(organizationIds: readonly string[] | undefined): void {
      if (!organizationIds) cached.clear()
      for (const organizationId of organizationIds ?? [])
        for (const environment of ['live', 'test'] as const)
          cached.delete(idOf({ organizationId, environment }))
    },
  }
}
