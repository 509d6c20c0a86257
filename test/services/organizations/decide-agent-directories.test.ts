import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { agentDomain } from '../../../infra/wire/web-bot-auth/fields.ts'
import {
  decideDirectoryAddition,
  decideDirectoryRemoval,
} from '../../../services/organizations/decide-agent-directories.ts'
import { organization, organizationId, refusal } from './fixtures.ts'

const at = { by: 'key', eventId: 'evt_change', now: 9 } as const
type State = Parameters<typeof decideDirectoryAddition>[0]
const acme = { domain: 'agent.example', name: 'Acme' }

describe('decideDirectoryAddition', () => {
  const add = (request: { domain: string; name?: string }, state: Partial<State> = {}) =>
    decideDirectoryAddition({ organization, directories: [], ...state }, { ...request, ...at })

  it('records the normalized domain and the name', () => {
    const data = { organization_id: organizationId, ...acme, added_at: 9 }
    expect(add({ domain: 'AGENT.Example.:443', name: ' Acme ' })).toMatchObject([
      {
        event: { type: 'AgentDirectoryAdded', data },
        meta: { eventId: 'evt_change', organizationId },
      },
    ])
  })

  it('returns no event for the same name, and renames for another', () => {
    expect(add(acme, { directories: [acme] })).toEqual([])
    expect(add({ domain: acme.domain }, { directories: [acme] })).toMatchObject([
      { event: { data: { domain: acme.domain, name: null } } },
    ])
  })

  it.each([
    ['an IPv4 address', '203.0.113.9'],
    ['an IPv6 address', '[2001:db8::1]'],
    ['an IPv4 address as a number', '3405803785'],
    ['a URL', 'https://agent.example'],
    ['a path', 'agent.example/keys'],
    ['a user', 'me@agent.example'],
    ['a wildcard', '*.agent.example'],
    ['a local name', 'localhost'],
    ['an invalid port', 'agent.example:99999'],
    ['two names', 'agent.example, other.example'],
    ['a line feed', 'agent.example\n'],
    ['an empty string', ''],
    ['a name that is too long', `${'a.'.repeat(130)}example`],
  ])('throws 422 for %s, and for an invalid name with it', (_, domain) => {
    expect(refusal(() => add({ domain, name: ' ' })).details).toMatchObject({
      fields: [{ name: 'domain' }, { name: 'name' }],
      parameter_set: 'agent_directory_add',
    })
  })

  it('throws 409 above 100 directories, which can still be renamed', () => {
    const directories = Array.from({ length: 100 }, (_, i) => ({
      domain: `a${i}.example`,
      name: null,
    }))
    expect(refusal(() => add(acme, { directories })).status).toBe(409)
    expect(add({ domain: 'a7.example', name: 'New' }, { directories })).toHaveLength(1)
  })

  it('throws unless the organization exists and is active', () => {
    const suspended = { ...organization, status: 'suspended' } as const
    expect(refusal(() => add(acme, { organization: undefined })).status).toBe(404)
    expect(refusal(() => add(acme, { organization: suspended })).status).toBe(403)
  })
})

describe('decideDirectoryRemoval', () => {
  const remove = (domain: string) =>
    decideDirectoryRemoval({ organization, directories: [acme] }, { domain, ...at })

  it('accepts any spelling of the domain', () => {
    const data = { organization_id: organizationId, domain: acme.domain, removed_at: 9 }
    expect(remove('Agent.example.')).toMatchObject([
      { event: { type: 'AgentDirectoryRemoved', data } },
    ])
  })

  it.each(['other.example', 'agent.example:8443', 'https://agent.example'])(
    'has no %s',
    (domain) => {
      expect(refusal(() => remove(domain)).status).toBe(404)
    },
  )
})

it.each([
  ['agent.example:8443', 'agent.example:8443'],
  ['B\u00dcCHER.EXAMPLE.', 'xn--bcher-kva.example'],
])('agentDomain(%s) is %s', (text, domain) => {
  expect(agentDomain(text)).toBe(domain)
})

it('agentDomain is idempotent and never throws', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.domain(), fc.webAuthority()), (text) => {
      const domain = agentDomain(text)
      if (domain !== undefined) expect(agentDomain(domain)).toBe(domain)
    }),
  )
})
