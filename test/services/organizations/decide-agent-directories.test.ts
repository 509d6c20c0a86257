import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { agentDomain } from '../../../infra/wire/web-bot-auth/fields.ts'
import {
  decideDirectoryAddition,
  decideDirectoryRemoval,
} from '../../../services/organizations/decide-agent-directories.ts'
import { organization, organizationId, refusal } from './given.ts'

const at = { by: 'key', eventId: 'evt_change', now: 9 } as const
const known = { organization, directories: [{ domain: 'agent.example', name: 'Acme' }] }
const nothing = { organization, directories: [] }

describe('adding a directory', () => {
  it('says its domain as signatures name it, and its name', () => {
    const request = { domain: 'AGENT.Example.:443', name: ' Acme ' }
    expect(decideDirectoryAddition(nothing, { ...request, ...at })).toMatchObject([
      {
        event: {
          type: 'AgentDirectoryAdded',
          data: {
            organization_id: organizationId,
            domain: 'agent.example',
            name: 'Acme',
            added_at: 9,
          },
        },
        meta: { eventId: 'evt_change', organizationId },
      },
    ])
  })

  it('does nothing where it is there by that name, and gives it another', () => {
    const request = { domain: 'agent.example', name: 'Acme' }
    expect(decideDirectoryAddition(known, { ...request, ...at })).toEqual([])
    expect(decideDirectoryAddition(known, { domain: 'agent.example', ...at })).toMatchObject([
      { event: { data: { domain: 'agent.example', name: null } } },
    ])
  })

  it.each([
    ['an address', '203.0.113.9'],
    ['an address of IPv6', '[2001:db8::1]'],
    ['a number that is an address', '3405803785'],
    ['a URL', 'https://agent.example'],
    ['a path', 'agent.example/keys'],
    ['a user', 'me@agent.example'],
    ['all names below one', '*.agent.example'],
    ['a name of this machine', 'localhost'],
    ['a port that is none', 'agent.example:99999'],
    ['two names', 'agent.example, other.example'],
    ['a line of its own', 'agent.example\n'],
    ['nothing', ''],
    ['a name that is too long', `${'a.'.repeat(130)}example`],
  ])('refuses %s, and a bad name with it', (_, domain) => {
    const error = refusal(() => decideDirectoryAddition(nothing, { domain, name: ' ', ...at }))
    expect(error.details).toMatchObject({
      fields: [{ name: 'domain' }, { name: 'name' }],
      parameter_set: 'agent_directory_add',
    })
  })

  it('is for a hundred at most, whose names may change', () => {
    const directories = Array.from({ length: 100 }, (_, i) => ({
      domain: `a${i}.example`,
      name: null,
    }))
    const full = { organization, directories }
    const error = refusal(() => decideDirectoryAddition(full, { domain: 'agent.example', ...at }))
    expect(error).toMatchObject({ status: 409 })
    expect(
      decideDirectoryAddition(full, { domain: 'a7.example', name: 'New', ...at }),
    ).toHaveLength(1)
  })

  it('is for an organization that is there and active', () => {
    const request = { domain: 'agent.example', ...at }
    const missing = { ...nothing, organization: undefined }
    expect(refusal(() => decideDirectoryAddition(missing, request))).toMatchObject({ status: 404 })
    const suspended = {
      ...nothing,
      organization: { ...organization, status: 'suspended' as const },
    }
    expect(refusal(() => decideDirectoryAddition(suspended, request))).toMatchObject({
      status: 403,
    })
  })
})

describe('removing a directory', () => {
  it('takes any spelling of its domain', () => {
    expect(decideDirectoryRemoval(known, { domain: 'Agent.example.', ...at })).toMatchObject([
      {
        event: {
          type: 'AgentDirectoryRemoved',
          data: { organization_id: organizationId, domain: 'agent.example', removed_at: 9 },
        },
      },
    ])
  })

  it.each(['other.example', 'agent.example:8443', 'https://agent.example'])(
    'has no %s',
    (domain) => {
      expect(refusal(() => decideDirectoryRemoval(known, { domain, ...at }))).toMatchObject({
        status: 404,
      })
    },
  )
})

describe('the domain of an agent', () => {
  it.each([
    ['agent.example', 'agent.example'],
    ['agent.example:8443', 'agent.example:8443'],
    ['b\u00fccher.example', 'xn--bcher-kva.example'],
    ['B\u00dcCHER.EXAMPLE.', 'xn--bcher-kva.example'],
  ])('%s is %s', (text, domain) => {
    expect(agentDomain(text)).toBe(domain)
  })

  it('is the same when it is read again, and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.domain(), fc.webAuthority()), (text) => {
        const domain = agentDomain(text)
        if (domain !== undefined) expect(agentDomain(domain)).toBe(domain)
      }),
    )
  })
})
