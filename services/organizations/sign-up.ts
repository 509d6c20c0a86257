import { createHash } from 'node:crypto'
import type { CommandDeps, DecidedEvent, DecisionGuard } from '../../infra/event-store/decide.ts'
import { counterRandom } from '../../infra/random.ts'
import {
  countKeys,
  findOrganization,
  type KeyCounts,
  listKeys,
} from '../../projections/organizations/queries.ts'
import type { ApiKeyRow, OrganizationRow } from '../../projections/organizations/tables.ts'
import type { Environment } from '../../schemas/events.ts'
import { completeKeyRequest } from './checked-input.ts'
import { createOrganization, generateKey, streamOf } from './commands.ts'
import { decideKeyIssue, decideKeyRevocation, type IssueApiKey } from './decide-key.ts'

export interface SignUp {
  accountName: string
  gateSessionId: string
  /** Keys are issued only while it holds. */
  stillNeeded: DecisionGuard
}

export interface SignedUp {
  /** Environment variables: a publishable and a secret key for each environment. */
  outputs: Record<string, string>
  isCurrent: DecisionGuard
}

/**
 * The same signup is the same organization, whoever repeats it, with the same `idTime`. Its keys are drawn anew each
 * time and replace those before, which nobody has, because they cannot be made again from what is stored. undefined
 * when they are not needed any more.
 */
export async function signUpOrganization(
  deps: CommandDeps,
  { accountName, gateSessionId, stillNeeded }: SignUp,
): Promise<SignedUp | undefined> {
  const request = { name: accountName, slug: slugOf(accountName, gateSessionId) }
  // It makes the id of the organization, which is no secret.
  const random = counterRandom(
    createHash('sha256').update('signup').digest(),
    Buffer.from(gateSessionId),
  )
  const { organizationId } = await createOrganization({ ...deps, random }, request)
  const [live, test] = [
    keyPair(deps, organizationId, 'live'),
    keyPair(deps, organizationId, 'test'),
  ]
  const keys = [live.publishable, live.secret, test.publishable, test.secret]
  if (!(await replaceKeys(deps, organizationId, { keys, stillNeeded }))) return undefined
  return {
    outputs: {
      TIDEGATE_ORGANIZATION_ID: organizationId,
      TIDEGATE_PUBLISHABLE_KEY: live.publishable.revealedKey,
      TIDEGATE_SECRET_KEY: live.secret.revealedKey,
      TIDEGATE_TEST_PUBLISHABLE_KEY: test.publishable.revealedKey,
      TIDEGATE_TEST_SECRET_KEY: test.secret.revealedKey,
    },
    isCurrent: allInUse(organizationId, keys),
  }
}

interface NewKey {
  revealedKey: string
  issue: IssueApiKey
}

function keyPair(deps: CommandDeps, organizationId: string, environment: Environment) {
  const now = deps.clock()
  function drawn(type: 'publishable' | 'secret'): NewKey {
    const scopes = type === 'secret' ? { scopes: ['*'] } : {}
    const spec = completeKeyRequest({ name: `Signup ${environment}`, environment, type, ...scopes })
    const { keyId, revealedKey, material } = generateKey(deps, { type, environment, now })
    return { revealedKey, issue: { organizationId, keyId, spec, material, by: 'operator', now } }
  }
  return { publishable: drawn('publishable'), secret: drawn('secret') }
}

// False when they are not needed any more.
async function replaceKeys(
  { decide, clock }: CommandDeps,
  organizationId: string,
  { keys, stillNeeded }: { keys: NewKey[]; stillNeeded: DecisionGuard },
): Promise<boolean> {
  const stream = streamOf(organizationId)
  const now = clock()
  const events = await decide({
    ...stream,
    locks: [...stream.locks, ...stillNeeded.locks],
    alsoReads: stillNeeded.alsoReads,
    load: async (tx) => ({
      isNeeded: await stillNeeded.holds(tx),
      organization: await findOrganization(tx, organizationId),
      counts: await countKeys(tx, organizationId),
      present: (await listKeys(tx, organizationId, { limit: maxKeys })).rows,
    }),
    decide: ({ isNeeded, ...state }) => (isNeeded ? decideKeyReplacement(state, keys, now) : []),
  })
  return events.length > 0
}

// More than an organization has before anybody knows a key of it.
const maxKeys = 1000

// Revokes the keys that have the name of a new one.
function decideKeyReplacement(
  {
    present,
    ...state
  }: { organization: OrganizationRow | undefined; counts: KeyCounts; present: ApiKeyRow[] },
  keys: NewKey[],
  now: number,
): DecidedEvent[] {
  const names = new Set(keys.map(({ issue }) => issue.spec.name))
  const former = present.filter(({ name }) => names.has(name))
  return [
    ...keys.flatMap(({ issue }) => decideKeyIssue({ ...state, existing: undefined }, issue)),
    ...former.flatMap((key) => decideKeyRevocation({ ...state, key }, { by: 'operator', now })),
  ]
}

// Holds while nobody has replaced the keys.
function allInUse(organizationId: string, keys: NewKey[]): DecisionGuard {
  const ids: string[] = keys.map(({ issue }) => issue.keyId)
  const { projection, topic, key } = streamOf(organizationId)
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
  // Nobody else has it: it ends with a part of the id of the signup.
  return `${stem}-${gateSessionId.slice(-8)}`
}
