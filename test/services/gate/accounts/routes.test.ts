import { expect, test, vi } from 'vitest'
import { day } from '../fixtures.ts'
import { useGateApi } from '../gate-api.ts'

const gate = await useGateApi()
const owner = await gate.owner()

async function account() {
  const { id, agentToken } = await gate.flow.signUp(owner.serviceId)
  const ask = (path: string) => () =>
    gate.post(`agent-tokens/${path}`, { agent_token: agentToken }, { key: owner.secretKey })
  return { id, verify: ask('verify'), revoke: ask('revoke') }
}
const inNinetyDays = () => new Date(gate.now.ms + 90 * day).toISOString()

test('a token is renewed once a day, however many requests use it at once', async () => {
  const { id, verify } = await account()
  const first = inNinetyDays()
  gate.now.ms += day
  expect((await verify()).data).toMatchObject({ valid: true, expires_at: first })
  gate.now.ms += 1
  const answers = await Promise.all(Array.from({ length: 16 }, verify))
  expect(answers.map(({ data }) => data.expires_at)).toEqual(Array(16).fill(inNinetyDays()))
  expect(await gate.count('AgentTokenRenewed', id)).toBe(1)
  gate.now.ms += 90 * day
  expect((await verify()).data).toEqual({ valid: false })
})

test('a token is verified while the log is unavailable, and renewed later', async () => {
  const { verify } = await account()
  const before = inNinetyDays()
  gate.now.ms += 2 * day
  const append = vi.spyOn(gate.log, 'append').mockRejectedValue(new Error('the log is away'))
  const during = await verify().finally(() => append.mockRestore())
  expect(during.data).toMatchObject({ valid: true, expires_at: before })
  await vi.waitFor(
    async () => expect((await verify()).data.expires_at).toBe(inNinetyDays()),
    20_000,
  )
}, 30_000)

test('concurrent revocations revoke a token once, and concurrent uses do not restore it', async () => {
  const { id, verify, revoke } = await account()
  gate.now.ms += 2 * day
  const revocations = Array.from({ length: 8 }, revoke)
  await Promise.all(Array.from({ length: 8 }, verify))
  expect(new Set((await Promise.all(revocations)).map(({ outcome }) => outcome))).toEqual(
    new Set(['204']),
  )
  expect((await verify()).data).toEqual({ valid: false })
  expect(await gate.count('AgentTokenRevoked', id)).toBe(1)
})
