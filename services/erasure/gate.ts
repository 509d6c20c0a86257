import type { ErasureRow } from '../../projections/erasures/projection.ts'
import { findErasure } from '../../projections/erasures/queries.ts'
import { type ErasableSession, findErasableSessions } from '../../projections/gate/queries.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import {
  type AppendErasureDeps,
  appendErasure,
  appendPersonErasure,
  countWebhooks,
  digestSubject,
  waitUntilErased,
} from './commands.ts'

interface GateErasureDeps extends AppendErasureDeps {
  /** Organization of the server itself, which the consent pages and the built-in service belong to. */
  serverOrganizationId: string
}

const projections = ['erasures', 'gate', 'sessions', 'repeats', 'webhooks']

/**
 * Erases the personal data of agents and people in the Gate sessions, and the sessions of the consent pages that
 * approved them. Ends Gate sessions that are still pending. The receipt can later be found by `gateAccountId`; with
 * null, it cannot.
 */
export async function eraseGateSessions(
  deps: GateErasureDeps,
  { sessions, gateAccountId }: { sessions: ErasableSession[]; gateAccountId: string | null },
): Promise<void> {
  const unerased = sessions.filter(({ is_erased }) => !is_erased)
  const byScope = Map.groupBy(unerased, (session) => JSON.stringify(scopeOf(deps, session)))
  for (const sameScope of byScope.values()) await eraseInScope(deps, sameScope, gateAccountId)
  await eraseConsentSessions(deps, unerased)
}

function scopeOf({ serverOrganizationId }: GateErasureDeps, session: ErasableSession): DataScope {
  return {
    organizationId: session.organization_id ?? serverOrganizationId,
    environment: session.environment,
  }
}

async function eraseInScope(
  deps: GateErasureDeps,
  sessions: ErasableSession[],
  gateAccountId: string | null,
): Promise<void> {
  const [first] = sessions
  if (!first) return
  const scope = scopeOf(deps, first)
  const sessionIds = sessions.map(({ id }) => id)
  const digestInput = gateAccountId === null ? null : accountDigestInput(gateAccountId)
  await appendErasure(deps, scope, {
    alsoReads: [],
    load: async (tx) => ({
      sessions: sessionIds.map((session_id) => ({ session_id, visitor_id: null })),
      visitorsWithOtherSessions: new Set(),
      counts: await countWebhooks(tx, { ...scope, sessionIds }),
    }),
    subject: {
      visitorId: null,
      userDigest: digestInput && digestSubject(deps.keyring.current, scope, digestInput),
    },
  })
}

// Consent pages are scored as sessions of the server's organization.
async function eraseConsentSessions(
  deps: GateErasureDeps,
  sessions: ErasableSession[],
): Promise<void> {
  const sessionIds = sessions.flatMap(({ proof_session_id }) => proof_session_id ?? [])
  if (sessionIds.length === 0) return
  for (const environment of ['live', 'test'] as const) {
    const scope = { organizationId: deps.serverOrganizationId, environment }
    await appendPersonErasure(deps, { scope, person: { sessionIds }, openSessionIds: [] })
  }
}

const accountDigestInput = (gateAccountId: string) => `gate\0${gateAccountId}`

/** Resolves to the rows of the receipt once no read model has the data; to no rows if the scope has no such account. */
export async function eraseGateAccount(
  deps: GateErasureDeps,
  { scope, gateAccountId }: { scope: DataScope; gateAccountId: string },
): Promise<ErasureRow[]> {
  const accountSessions = await findErasableSessions(deps.pool, { gateAccountId })
  const { organizationId, environment } = scope
  const sessions = accountSessions.filter((session) => {
    const owner = scopeOf(deps, session)
    return owner.organizationId === organizationId && owner.environment === environment
  })
  await eraseGateSessions(deps, { sessions, gateAccountId })
  await waitUntilErased(deps, projections)
  const digestInput = accountDigestInput(gateAccountId)
  const userDigests = deps.keyring.all.map((master) => digestSubject(master, scope, digestInput))
  return sessions.length === 0 ? [] : findErasure(deps.pool, scope, { userDigests })
}

/**
 * Erases the Gate session and all others of its account. Resolves to true once no read model has their personal data,
 * or to false if there is no such session.
 */
export async function eraseGateSession(
  deps: GateErasureDeps,
  gateSessionId: string,
): Promise<boolean> {
  const [session] = await findErasableSessions(deps.pool, { gateSessionId })
  if (!session) return false
  const { gate_account_id: gateAccountId } = session
  const sessions =
    gateAccountId === null ? [session] : await findErasableSessions(deps.pool, { gateAccountId })
  await eraseGateSessions(deps, { sessions, gateAccountId })
  await waitUntilErased(deps, projections)
  return true
}
