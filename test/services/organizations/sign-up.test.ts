import { randomBytes } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import type { DecisionGuard } from '../../../infra/event-store/decide.ts'
import { randomId } from '../../../infra/ids.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import { findOrganization, listKeys } from '../../../projections/organizations/queries.ts'
import { type SignedUp, signUpOrganization } from '../../../services/organizations/sign-up.ts'
import { startApi } from '../../support/api.ts'

const api = await startApi({ roles: ['api'] })
afterAll(() => api.stop())

const always: DecisionGuard = { locks: [], alsoReads: [], holds: async () => true }

/** A signup that can be repeated, by this process or another. */
function given(accountName = 'Robin') {
  const idTime = api.now.ms
  const signup = { accountName, gateSessionId: randomId('gate', randomBytes) }
  const attempt = (stillNeeded = always) =>
    signUpOrganization({ ...api.deps, idTime }, { ...signup, stillNeeded })
  async function repeat(): Promise<SignedUp> {
    const made = await attempt()
    if (!made) throw new Error('no keys were issued')
    return made
  }
  return { signup, attempt, repeat }
}

const works = ({ outputs: { TIDEGATE_ORGANIZATION_ID: id, TIDEGATE_SECRET_KEY: key } }: SignedUp) =>
  api.send({ url: `/v1/organizations/${id}`, key: key ?? '' }).then(({ status }) => status === 200)

const isCurrent = (made: SignedUp) => transaction(api.pool, (tx) => made.isCurrent.holds(tx))

const keysOf = async ({ outputs }: SignedUp) =>
  (await listKeys(api.pool, outputs.TIDEGATE_ORGANIZATION_ID ?? '', { limit: 200 })).rows

test('an organization with a key of each type in each environment, which work', async () => {
  const { repeat, signup } = given('Robin & Söhne GmbH!')
  const made = await repeat()
  expect(made.outputs).toEqual({
    TIDEGATE_ORGANIZATION_ID: expect.stringMatching(/^org_/),
    TIDEGATE_PUBLISHABLE_KEY: expect.stringMatching(/^pk_live_/),
    TIDEGATE_SECRET_KEY: expect.stringMatching(/^sk_live_/),
    TIDEGATE_TEST_PUBLISHABLE_KEY: expect.stringMatching(/^pk_test_/),
    TIDEGATE_TEST_SECRET_KEY: expect.stringMatching(/^sk_test_/),
  })
  expect(
    await findOrganization(api.pool, made.outputs.TIDEGATE_ORGANIZATION_ID ?? ''),
  ).toMatchObject({
    name: 'Robin & Söhne GmbH!',
    slug: `robin-sohne-gmbh-${signup.gateSessionId.slice(-8)}`,
  })
  expect(await works(made)).toBe(true)
  expect(await isCurrent(made)).toBe(true)
})

test('repeated, also by two processes at once, it is the same organization, and the last keys alone work', async () => {
  const { repeat } = given()
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

test('nothing is issued or revoked once it is not wanted any more', async () => {
  const { repeat, attempt } = given()
  const made = await repeat()
  expect(await attempt({ ...always, holds: async () => false })).toBeUndefined()
  expect(await works(made)).toBe(true)
  expect(await keysOf(made)).toHaveLength(4)
})

test('accounts of the same name are different organizations', async () => {
  const [one, two] = [await given().repeat(), await given().repeat()]
  expect(two.outputs.TIDEGATE_ORGANIZATION_ID).not.toBe(one.outputs.TIDEGATE_ORGANIZATION_ID)
})

test.each(['名前', '---', 'x'.repeat(100), '🦊'])(
  '%s is a name that an organization can have',
  async (name) => {
    const { TIDEGATE_ORGANIZATION_ID: id = '' } = (await given(name).repeat()).outputs
    expect(await findOrganization(api.pool, id)).toMatchObject({
      name,
      slug: expect.stringMatching(/^[a-z0-9-]+$/),
    })
  },
)
