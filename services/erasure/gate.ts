import type { ErasureRow } from '../../projections/erasures/projection.ts'
import { findErasure } from '../../projections/erasures/queries.ts'
import { type ErasableSession, erasableSessions } from '../../projections/gate/queries.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import {
  countWebhooks,
  type DecidingDeps,
  decideOn,
  eraseKnown,
  userDigest,
  waitUntilApplied,
} from './commands.ts'

interface GateErasureDeps extends DecidingDeps {
  /** The server's own organization, which has the consent pages and the built-in service. */
  ownOrganizationId: string
}

const projections = ['erasures', 'gate', 'sessions', 'repeats', 'webhooks']

/**
 * Erases what is known of the agent and the person of Gate sessions, and of the consent pages that approved them. Sessions
 * that have not ended end. `name` is what a receipt is found by.
 */
export async function eraseGateSessions(
  deps: GateErasureDeps,
  { sessions, name }: { sessions: ErasableSession[]; name: string | null },
): Promise<void> {
  const left = sessions.filter(({ is_erased }) => !is_erased)
  const byScope = Map.groupBy(left, (session) => JSON.stringify(scopeOf(deps, session)))
  for (const some of byScope.values()) await eraseOf(deps, some, name)
  await erasePages(deps, left)
}

function scopeOf({ ownOrganizationId }: GateErasureDeps, session: ErasableSession): DataScope {
  return {
    organizationId: session.organization_id ?? ownOrganizationId,
    environment: session.environment,
  }
}

async function eraseOf(
  deps: GateErasureDeps,
  some: ErasableSession[],
  name: string | null,
): Promise<void> {
  const [first] = some
  if (!first) return
  const scope = scopeOf(deps, first)
  const sessionIds = some.map(({ id }) => id)
  await decideOn(deps, scope, {
    alsoReads: [],
    load: async (tx) => ({
      sessions: sessionIds.map((session_id) => ({ session_id, visitor_id: null })),
      visitorsWithOtherSessions: new Set(),
      counts: await countWebhooks(tx, { ...scope, sessionIds }),
    }),
    subject: {
      visitorId: null,
      userDigest: name === null ? null : userDigest(deps.keyring.current, scope, digested(name)),
    },
  })
}

// The sessions by which the consent pages of those who approved were scored. They are of the server's own organization.
async function erasePages(deps: GateErasureDeps, sessions: ErasableSession[]): Promise<void> {
  const sessionIds = sessions.flatMap(({ proof_session_id }) => proof_session_id ?? [])
  if (sessionIds.length === 0) return
  for (const environment of ['live', 'test'] as const) {
    const scope = { organizationId: deps.ownOrganizationId, environment }
    await eraseKnown(deps, { scope, person: { sessionIds }, openIds: [] })
  }
}

const digested = (name: string) => `gate\0${name}`

/** The rows of the receipt; none where the account is not of the scope. */
export async function eraseGateAccount(
  deps: GateErasureDeps,
  { scope, gateAccountId }: { scope: DataScope; gateAccountId: string },
): Promise<ErasureRow[]> {
  const all = await erasableSessions(deps.pool, { gateAccountId })
  const { organizationId, environment } = scope
  const sessions = all.filter((one) => {
    const owner = scopeOf(deps, one)
    return owner.organizationId === organizationId && owner.environment === environment
  })
  await eraseGateSessions(deps, { sessions, name: gateAccountId })
  await waitUntilApplied(deps, projections)
  const userDigests = deps.keyring.all.map((master) =>
    userDigest(master, scope, digested(gateAccountId)),
  )
  return sessions.length === 0 ? [] : findErasure(deps.pool, scope, { userDigests })
}

/** Whether there is such a session; resolves once no read model has who requested it, or another of its account. */
export async function eraseGateSession(
  deps: GateErasureDeps,
  gateSessionId: string,
): Promise<boolean> {
  const [session] = await erasableSessions(deps.pool, { gateSessionId })
  if (!session) return false
  const { gate_account_id: gateAccountId } = session
  const sessions =
    gateAccountId === null ? [session] : await erasableSessions(deps.pool, { gateAccountId })
  await eraseGateSessions(deps, { sessions, name: gateAccountId })
  await waitUntilApplied(deps, projections)
  return true
}
