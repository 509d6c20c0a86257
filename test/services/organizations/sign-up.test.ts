import { randomBytes } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import type { DecisionGuard } from '../../../infra/event-store/decide.ts'
import { randomId } from '../../../infra/ids.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { findOrganization, listKeys } from '../../../projections/organizations/queries.ts'
import { type SignUpResult, signUpOrganization } from '../../../services/organizations/sign-up.ts'
import { startApi } from '../../support/api.ts'

const api = await startApi({ roles: ['api'] })
afterAll(() => api.stop())

const always: DecisionGuard = { locks: [], alsoReads: [], holds: async () => true }

/** Creates a signup that can be repeated by this process or another. */
function createSignup(accountName = 'Robin') {
  const idTime = api.now.ms
  const signup = { accountName, gateSessionId: randomId('gate', randomBytes) }
  const attempt = (issueGuard = always) =>
    signUpOrganization({ ...api.deps, idTime }, { ...signup, issueGuard })
  async function repeat(): Promise<SignUpResult> {
    const result = await attempt()
    if (!result) throw new Error('no keys were issued')
    return result
  }
  return { signup, attempt, repeat }
}

const works = ({
  outputs: { TIDEGATE_ORGANIZATION_ID: id, TIDEGATE_SECRET_KEY: key },
}: SignUpResult) =>
  api.send({ url: `/v1/organizations/${id}`, key: key ?? '' }).then(({ status }) => status === 200)

const isCurrent = (result: SignUpResult) =>
  transaction(api.pool, (tx) => result.keysGuard.holds(tx))

const keysOf = async ({ outputs }: SignUpResult) =>
  (await listKeys(api.pool, outputs.TIDEGATE_ORGANIZATION_ID ?? '', { limit: 200 })).rows

test('creates an organization with a working key of each type in each environment', async () => {
  const { repeat, signup } = createSignup('Robin & Söhne GmbH!')
  const result = await repeat()
  expect(result.outputs).toEqual({
    TIDEGATE_ORGANIZATION_ID: expect.stringMatching(/^org_/),
    TIDEGATE_PUBLISHABLE_KEY: expect.stringMatching(/^pk_live_/),
    TIDEGATE_SECRET_KEY: expect.stringMatching(/^sk_live_/),
    TIDEGATE_TEST_PUBLISHABLE_KEY: expect.stringMatching(/^pk_test_/),
    TIDEGATE_TEST_SECRET_KEY: expect.stringMatching(/^sk_test_/),
  })
  expect(
    await findOrganization(api.pool, result.outputs.TIDEGATE_ORGANIZATION_ID ?? ''),
  ).toMatchObject({
    name: 'Robin & Söhne GmbH!',
    slug: `robin-sohne-gmbh-${signup.gateSessionId.slice(-8)}`,
  })
  expect(await works(result)).toBe(true)
  expect(await isCurrent(result)).toBe(true)
})

test('a repeat, even in two processes at once, finds the same organization, and only the last keys work', async () => {
  const { repeat } = createSignup()
  const all = await Promise.all([repeat(), repeat()])
  api.now.ms += 60_000
  all.push(await repeat())
  expect(new Set(all.map(({ outputs }) => outputs.TIDEGATE_ORGANIZATION_ID)).size).toBe(1)
  expect(new Set(all.map(({ outputs }) => outputs.TIDEGATE_SECRET_KEY)).size).toBe(3)
  expect(await Promise.all(all.map(isCurrent))).toEqual([false, false, true])
  expect(await Promise.all(all.map(works))).toEqual([false, false, true])
  const [first] = all
  const active = first && (await keysOf(first)).filter(({ status }) => status === 'active')
  expect(active).toHaveLength(4)
})

test('nothing is issued or revoked once the guard does not hold', async () => {
  const { repeat, attempt } = createSignup()
  const result = await repeat()
  expect(await attempt({ ...always, holds: async () => false })).toBeUndefined()
  expect(await works(result)).toBe(true)
  expect(await keysOf(result)).toHaveLength(4)
})

test('accounts of the same name are different organizations', async () => {
  const [one, two] = [await createSignup().repeat(), await createSignup().repeat()]
  expect(two.outputs.TIDEGATE_ORGANIZATION_ID).not.toBe(one.outputs.TIDEGATE_ORGANIZATION_ID)
})

test.each(['名前', '---', 'x'.repeat(100), '🦊'])(
  'an organization can be named %s',
  async (name) => {
    const { TIDEGATE_ORGANIZATION_ID: id = '' } = (await createSignup(name).repeat()).outputs
    expect(await findOrganization(api.pool, id)).toMatchObject({
      name,
      slug: expect.stringMatching(/^[a-z0-9-]+$/),
    })
  },
)
