import { createHash } from 'node:crypto'
import type { CommandDeps, DecidedEvent, DecisionGuard } from '../../infra/event-store/decide.ts'
import { createDeterministicRandom } from '../../infra/random.ts'
import {
  countKeys,
  findOrganization,
  type KeyCounts,
  listKeys,
} from '../../projections/organizations/queries.ts'
import type { ApiKeyRow, OrganizationRow } from '../../projections/organizations/tables.ts'
import type { Environment } from '../../schemas/events.ts'
import { completeKeyRequest } from './checked-input.ts'
import { createOrganization, generateKey, organizationStream } from './commands.ts'
import { decideKeyIssue, decideKeyRevocation, type IssueApiKey } from './decide-key.ts'

export interface SignUpRequest {
  accountName: string
  gateSessionId: string
  /** Guard under which keys are issued. */
  issueGuard: DecisionGuard
}

export interface SignUpResult {
  /** Environment variables: the organization's id, and a publishable and a secret key for each environment. */
  outputs: Record<string, string>
  /** Holds until a retry has replaced the keys. */
  keysGuard: DecisionGuard
}

/**
 * Creates the organization of a signup with its keys. A retry with the same `idTime` finds the same organization and
 * replaces its keys, because earlier secret keys cannot be restored from their hashes and were never delivered. Returns
 * undefined if `issueGuard` does not hold.
 */
export async function signUpOrganization(
  deps: CommandDeps,
  { accountName, gateSessionId, issueGuard }: SignUpRequest,
): Promise<SignUpResult | undefined> {
  const request = { name: accountName, slug: slugOf(accountName, gateSessionId) }
  // Derives the organization's id from the signup. The id is no secret.
  const random = createDeterministicRandom(
    createHash('sha256').update('signup').digest(),
    Buffer.from(gateSessionId),
  )
  const { organizationId } = await createOrganization({ ...deps, random }, request)
  const [live, test] = [
    keyPair(deps, organizationId, 'live'),
    keyPair(deps, organizationId, 'test'),
  ]
  const keys = [live.publishable, live.secret, test.publishable, test.secret]
  if (!(await replaceKeys(deps, organizationId, { keys, issueGuard }))) return undefined
  return {
    outputs: {
      TIDEGATE_ORGANIZATION_ID: organizationId,
      TIDEGATE_PUBLISHABLE_KEY: live.publishable.revealedKey,
      TIDEGATE_SECRET_KEY: live.secret.revealedKey,
      TIDEGATE_TEST_PUBLISHABLE_KEY: test.publishable.revealedKey,
      TIDEGATE_TEST_SECRET_KEY: test.secret.revealedKey,
    },
    keysGuard: createKeysGuard(organizationId, keys),
  }
}

interface NewKey {
  revealedKey: string
  issue: IssueApiKey
}

function keyPair(deps: CommandDeps, organizationId: string, environment: Environment) {
  const now = deps.clock()
  function newKey(type: 'publishable' | 'secret'): NewKey {
    const scopes = type === 'secret' ? { scopes: ['*'] } : {}
    const spec = completeKeyRequest({ name: `Signup ${environment}`, environment, type, ...scopes })
    const { keyId, revealedKey, material } = generateKey(deps, { type, environment, now })
    return { revealedKey, issue: { organizationId, keyId, spec, material, by: 'operator', now } }
  }
  return { publishable: newKey('publishable'), secret: newKey('secret') }
}

// Returns false if `issueGuard` does not hold.
async function replaceKeys(
  { decide, clock }: CommandDeps,
  organizationId: string,
  { keys, issueGuard }: { keys: NewKey[]; issueGuard: DecisionGuard },
): Promise<boolean> {
  const stream = organizationStream(organizationId)
  const now = clock()
  const events = await decide({
    ...stream,
    locks: [...stream.locks, ...issueGuard.locks],
    alsoReads: issueGuard.alsoReads,
    load: async (tx) => ({
      isNeeded: await issueGuard.holds(tx),
      organization: await findOrganization(tx, organizationId),
      counts: await countKeys(tx, organizationId),
      existingKeys: (await listKeys(tx, organizationId, { limit: maxKeys })).rows,
    }),
    decide: ({ isNeeded, ...state }) => (isNeeded ? decideKeyReplacement(state, keys, now) : []),
  })
  return events.length > 0
}

// More keys than retries of a signup can create.
const maxKeys = 1000

// Issues the new keys and revokes the existing ones of the same names.
function decideKeyReplacement(
  {
    existingKeys,
    ...state
  }: { organization: OrganizationRow | undefined; counts: KeyCounts; existingKeys: ApiKeyRow[] },
  keys: NewKey[],
  now: number,
): DecidedEvent[] {
  const names = new Set(keys.map(({ issue }) => issue.spec.name))
  const replaced = existingKeys.filter(({ name }) => names.has(name))
  return [
    ...keys.flatMap(({ issue }) => decideKeyIssue({ ...state, existing: undefined }, issue)),
    ...replaced.flatMap((key) => decideKeyRevocation({ ...state, key }, { by: 'operator', now })),
  ]
}

// Returns a guard that holds until one of the keys is replaced or revoked.
function createKeysGuard(organizationId: string, keys: NewKey[]): DecisionGuard {
  const ids: string[] = keys.map(({ issue }) => issue.keyId)
  const { projection, topic, key } = organizationStream(organizationId)
  return {
    locks: [],
    alsoReads: [{ projection, topic, key }],
    async holds(tx) {
      const { rows } = await listKeys(tx, organizationId, { limit: maxKeys })
      const active = rows.filter(({ id, status }) => ids.includes(id) && status === 'active')
      return active.length === ids.length
    },
  }
}

function slugOf(accountName: string, gateSessionId: string): string {
  const readable = accountName
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .match(/[a-z0-9]+/g)
  const stem = (readable ?? ['account']).join('-').slice(0, 40).replace(/-+$/, '')
  // Ends with a part of the signup's id, to be unique.
  return `${stem}-${gateSessionId.slice(-8)}`
}
