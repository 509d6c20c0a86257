import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { randomId } from '../../../infra/ids.ts'
import { counterRandom } from '../../../infra/random.ts'
import { findOrganization, listKeys } from '../../../projections/organizations/queries.ts'
import { signUpOrganization } from '../../../services/organizations/sign-up.ts'
import { startOrganizations } from './support.ts'

let world: Awaited<ReturnType<typeof startOrganizations>>
beforeAll(async () => {
  world = await startOrganizations()
})
afterAll(() => world.stop())

/** A signup, and what makes it the same whenever it is repeated. */
function given(accountName = 'Robin') {
  const seed = randomBytes(16)
  const key = createHash('sha256').update(seed).digest()
  const idTime = world.now.ms
  const signup = { accountName, gateSessionId: randomId('gate', randomBytes) }
  return {
    signup,
    repeat: () =>
      signUpOrganization(
        { ...world.deps, random: counterRandom(key, seed), idTime, clock: () => idTime },
        signup,
      ),
  }
}

test('an organization with a key of each type in each environment, which work', async () => {
  const { repeat, signup } = given('Robin & Söhne GmbH!')
  const variables = await repeat()
  const { TIDEGATE_ORGANIZATION_ID: id = '', TIDEGATE_SECRET_KEY: key = '' } = variables
  expect(variables).toEqual({
    TIDEGATE_ORGANIZATION_ID: expect.stringMatching(/^org_/),
    TIDEGATE_PUBLISHABLE_KEY: expect.stringMatching(/^pk_live_/),
    TIDEGATE_SECRET_KEY: expect.stringMatching(/^sk_live_/),
    TIDEGATE_TEST_PUBLISHABLE_KEY: expect.stringMatching(/^pk_test_/),
    TIDEGATE_TEST_SECRET_KEY: expect.stringMatching(/^sk_test_/),
  })
  expect(await findOrganization(world.pool, id)).toMatchObject({
    name: 'Robin & Söhne GmbH!',
    slug: `robin-sohne-gmbh-${signup.gateSessionId.slice(-8)}`,
  })
  expect(await world.send({ url: `/v1/organizations/${id}`, key })).toMatchObject({ status: 200 })
})

test('repeated, also by two processes at once, it is the same organization with the same keys', async () => {
  const { repeat } = given()
  const all = await Promise.all([repeat(), repeat()])
  all.push(await repeat())
  world.now.ms += 60_000
  all.push(await repeat())
  const [first = {}, ...others] = all
  for (const other of others) expect(other).toEqual(first)
  const { rows } = await listKeys(world.pool, first.TIDEGATE_ORGANIZATION_ID ?? '', { limit: 200 })
  expect(rows).toHaveLength(4)
})

test('accounts of the same name are different organizations', async () => {
  const [one, two] = [await given().repeat(), await given().repeat()]
  expect(two.TIDEGATE_ORGANIZATION_ID).not.toBe(one.TIDEGATE_ORGANIZATION_ID)
})

test.each(['名前', '---', 'x'.repeat(100), '🦊'])(
  '%s is a name that an organization can have',
  async (name) => {
    const { TIDEGATE_ORGANIZATION_ID: id = '' } = await given(name).repeat()
    expect(await findOrganization(world.pool, id)).toMatchObject({
      name,
      slug: expect.stringMatching(/^[a-z0-9-]+$/),
    })
  },
)
