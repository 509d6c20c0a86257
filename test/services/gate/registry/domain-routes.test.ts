import { randomBytes } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { verifyService } from '../../../../services/gate/registry/commands.ts'
import type { GateOwner } from '../../../support/gate-world.ts'
import type { Send } from '../../../support/send.ts'
import { useGateApi } from '../gate-api.ts'

let owner: GateOwner
/** DNS records by domain, and the number of lookups. */
const published: { txt: Record<string, string[]>; reads: number } = { txt: {}, reads: 0 }

const domainReader = {
  async lookUpTxt(name: string) {
    published.reads++
    return published.txt[name] ?? []
  },
  fileAt: async () => undefined,
}
const gate = await useGateApi({ gate: () => ({ domainReader }) })
beforeEach(async () => {
  // No other organization can use the name of a verified service.
  const name = `Harbour ${randomBytes(4).toString('hex')}`
  owner = await gate.owner({ fields: { name } })
})

const ask = (path = '', more: Omit<Send, 'url'> = {}) =>
  gate.ask(`services/${owner.serviceId}${path}`, { key: owner.secretKey, ...more })
const domain = async () => (await ask('/domain')).data
const verify = () => ask('/domain/verify', { method: 'POST' })
const patch = (body: object) => ask('', { method: 'PATCH', body })
const useVariable = (key: string) => patch({ env_vars: [{ name: 'Key', key, secret: true }] })

async function showChallenge(): Promise<void> {
  const { name, value } = (await domain()).challenge.dns
  published.txt = { [name]: [value] }
}

test('a domain that publishes the challenge is verified, and its name becomes the variable prefix', async () => {
  const before = await domain()
  expect(before).toMatchObject({ domain: 'acme.example', verified: false, env_prefix: null })
  const notShown = await verify()
  expect(notShown.outcome).toBe('422 gate.validation_failed website')
  expect(notShown.error.details.fields[0].issue).toBe('not_shown')
  expect((await useVariable('ACME_BASE_URL')).outcome).toBe(
    '422 gate.validation_failed env_vars.0.key',
  )
  await showChallenge()
  const verified = { verified: true, env_prefix: 'ACME_' }
  expect((await verify()).data).toEqual({ ...before, ...verified })
  const shown = { verified_domain: 'acme.example', env_prefix: 'ACME_' }
  expect((await useVariable('ACME_BASE_URL')).data).toMatchObject(shown)
  expect((await gate.ask(`registry/${owner.serviceId}`)).data).toMatchObject(shown)
})

test('the verification is recorded with its actor, and repeating it looks nothing up', async () => {
  await showChallenge()
  await verify()
  const { reads } = published
  expect((await verify()).status).toBe(200)
  expect(published.reads).toBe(reads)
  const events = (await gate.events()).filter(({ type }) => type === 'GateServiceDomainVerified')
  expect(events.at(-1)).toMatchObject({
    data: { service_id: owner.serviceId, domain: 'acme.example', proof: 'dns' },
    cause: { actor: { type: 'key', id: owner.secretKeyId } },
  })
  expect(await gate.count('GateServiceDomainVerified', owner.serviceId)).toBe(1)
})

test('changing the website ends the verification, changing name or description does not, and the operator can end it', async () => {
  await showChallenge()
  await verify()
  const verifiedDomain = async (change: object) => (await patch(change)).data.verified_domain
  expect(await verifiedDomain({ name: 'Acme Post', description: 'Post.' })).toBe('acme.example')
  expect(await verifiedDomain({ website: 'https://acme.example/post' })).toBeUndefined()
  await verify()
  await verifyService(gate.deps, { serviceId: owner.serviceId, verified: false })
  expect(await domain()).toMatchObject({ verified: false, env_prefix: null })
})

test("the operator's verification grants a variable prefix, too", async () => {
  await verifyService(gate.deps, { serviceId: owner.serviceId, verified: true })
  expect(await domain()).toMatchObject({ verified: false, env_prefix: 'ACME_' })
  expect((await useVariable('ACME_BASE_URL')).status).toBe(200)
})

test("the challenge of another organization's service is not accepted", async () => {
  await showChallenge()
  owner = await gate.owner()
  expect((await verify()).outcome).toBe('422 gate.validation_failed website')
})

test('a domain that cannot be owned, or has the name of somebody else, is neither looked up nor verified', async () => {
  const { reads } = published
  for (const site of ['github.io', 'openai.example', 'database.example']) {
    await patch({ website: `https://${site}` })
    expect((await verify()).error.details.fields).toMatchObject([
      { name: 'website', issue: 'not_allowed' },
    ])
  }
  expect(published.reads).toBe(reads)
})

test('a disabled service is not verified', async () => {
  await ask('', { method: 'DELETE' })
  expect((await verify()).outcome).toBe('409 request.conflict')
})
