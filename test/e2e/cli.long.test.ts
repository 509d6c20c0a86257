import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'

interface Organization {
  id: string
  slug: string
  status: string
  secret_limit: number | null
  publishable_limit: number | null
  capabilities: string[]
}

interface Entry {
  type: string
  subject_id: string
  occurred_at: string
}

interface Key {
  id: string
  name: string
  type: string
  status: string
  revealed_key?: string
}

describe('the operator commands', () => {
  let cluster: Cluster
  let slug = ''

  beforeAll(async () => {
    cluster = await startCluster({ log: 'postgres', processes: 1 })
    slug = cluster.owner.slug
  }, 60_000)
  afterAll(() => cluster?.stop())

  async function api(path: string, key = cluster.owner.secret.key) {
    const response = await cluster.fetch(0, path, {
      headers: { authorization: `Bearer ${key}` },
    })
    const { data }: { data: unknown } = JSON.parse(await response.text())
    return { status: response.status, headers: response.headers, data }
  }

  async function refused(...args: string[]) {
    const [text, json] = await Promise.all([cluster.cli(args), cluster.cli([...args, '--json'])])
    expect([text.code, text.stdout, json.code, json.stderr]).toEqual([1, '', 1, ''])
    const { error }: { error: { code: string; details?: unknown } } = JSON.parse(json.stdout)
    return { text: text.stderr, error }
  }

  it('make an organization, show it as a table and as the API does', async () => {
    const made = await cluster.cli(['org', 'create', '--name', 'Acme', '--slug', 'acme'])
    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(made.stdout).toMatch(/│ org_[0-9a-z]{26} │ acme +│ Acme +│ active +│ default/)
    const all = await cluster.operate<Organization[]>('org', 'list')
    expect(all.map((one) => one.slug)).toEqual(['acme', slug])
    const listed = await cluster.cli(['org', 'list'])
    for (const { id } of all) expect(listed.stdout).toContain(id)
    const { id, secret_limit, publishable_limit, capabilities, ...shown } =
      all[1] ?? all[0] ?? fail()
    expect({ secret_limit, publishable_limit, capabilities }).toEqual({
      secret_limit: null,
      publishable_limit: null,
      capabilities: [],
    })
    const { data } = await api(`/v1/organizations/${id}`)
    expect(data).toEqual({ ...shown, id, data_policy: expect.any(Object) })
  })

  it('set what is recorded of visitors and for how long, as the API shows it, and refuse what does not fit', async () => {
    const flags = [
      '--sessions',
      '90',
      '--visitors',
      'forever',
      '--addresses',
      'short',
      '--minimal-mode',
      'allow',
    ]
    const set = await cluster.cli(['org', 'policy', slug, ...flags])
    expect(set).toMatchObject({ code: 0, stderr: '' })
    expect(set.stdout).toMatch(/│ sessions +│ 90 days +│/)
    expect(set.stdout).toMatch(/│ visitors +│ for ever +│/)
    expect(set.stdout).toContain('Addresses are recorded in short. The minimal mode is allowed.')
    const shown = await cluster.operate<{ kept_days: object }>('org', 'policy', slug)
    const policy = {
      session_days: 90,
      decision_days: null,
      visitor_days: 0,
      webhook_days: null,
      shortens_addresses: true,
      allows_minimal_mode: true,
      changed_at: expect.any(String),
    }
    expect(shown).toMatchObject({ ...policy, kept_days: { session_days: 90, visitor_days: 0 } })
    const { organizationId } = cluster.owner
    expect((await api(`/v1/organizations/${organizationId}`)).data).toMatchObject({
      data_policy: policy,
    })
    const days = await refused('org', 'policy', slug, '--sessions', '1')
    expect(days.text).toMatch(
      /^session_days: .*\n {2}session_days: expected 2 to 36500 days, for ever, or the default/,
    )
    const back = [
      '--sessions',
      'default',
      '--visitors',
      'default',
      '--addresses',
      'full',
      '--minimal-mode',
      'refuse',
    ]
    expect(await cluster.cli(['org', 'policy', slug, ...back])).toMatchObject({ code: 0 })
  }, 60_000)

  it('make a secret key with the narrow scopes where none are named, and list them', async () => {
    const narrow = ['sessions:read', 'sessions:update', 'fingerprints:read']
    const create = ['keys', 'create', slug, '--name', 'Server', '--type', 'secret']
    const { code, stdout } = await cluster.cli(create)
    expect(code).toBe(0)
    for (const scope of narrow) expect(stdout).toMatch(new RegExp(`│ ${scope} +│`))
    const key = await cluster.operate<{ scopes: string[] }>(...create)
    expect(key.scopes).toEqual(narrow)
  })

  it('refuse what does not fit with the field and exit code 1', async () => {
    const taken = await refused('org', 'create', '--name', 'Other', '--slug', slug)
    expect(taken.text).toMatch(/slug/)
    expect(taken.error).toMatchObject({ code: 'request.conflict', status: 409, retryable: false })
    const bad = await refused('org', 'create', '--name', 'Other', '--slug', 'Not A Slug')
    expect(bad.text).toMatch(/^slug: .*\n {2}slug: expected 1-63 lower-case letters/)
    expect(bad.error).toMatchObject({
      code: 'request.validation_failed',
      details: { fields: [{ name: 'slug' }] },
    })
    const scopes = await refused(
      'keys',
      'create',
      slug,
      '--name',
      'X',
      '--type',
      'secret',
      '--scopes',
      ',',
    )
    expect(scopes.text).toMatch(/^scopes: /)
    const unknown = await refused(
      'keys',
      'create',
      slug,
      '--name',
      'X',
      '--type',
      'secret',
      '--scopes',
      'everything',
    )
    expect(unknown.text).toMatch(/possible values: .*sessions:list/)
    const nobody = await refused('keys', 'list', 'nobody')
    expect(nobody.error).toMatchObject({ code: 'request.not_found', status: 404 })
    const limit = await refused('org', 'limits', slug, '--secret', '9')
    expect(limit.text).toMatch(
      /^secret_limit: .*\n {2}secret_limit: expected a whole number from 10 /,
    )
    const usage = await refused('org', 'limits', slug, '--secret', '-1')
    expect(usage.error).toMatchObject({ code: 'command.usage', retryable: false })
    const capability = await refused('org', 'enable', slug, 'everything')
    expect(capability.text).toContain('possible values: ip_rotation')
  }, 60_000)

  it('print who did what, in an organization or in all', async () => {
    const { id } = await cluster.operate<Organization>(
      'org',
      'create',
      '--name',
      'Seen',
      '--slug',
      'seen',
    )
    const made = await cluster.operate<Key>('keys', 'create', 'seen', '--name', 'CI')
    await cluster.operate('keys', 'revoke', 'seen', made.id)
    const log = await cluster.operate<Entry[]>('audit', '--organization', 'seen')
    const entry = (type: string, subject_id: string, command: string) =>
      expect.objectContaining({
        type,
        subject_id,
        organization_id: id,
        request_id: null,
        actor: { type: 'operator', id: command },
      })
    const revoked = entry('ApiKeyRevoked', made.id, 'keys revoke')
    expect(log).toEqual([
      revoked,
      entry('ApiKeyIssued', made.id, 'keys create'),
      entry('OrganizationCreated', id, 'org create'),
    ])
    expect(await cluster.operate('audit', '--limit', '1')).toEqual([revoked])
    const since = log[1]?.occurred_at ?? ''
    expect(await cluster.operate('audit', '--organization', id, '--since', since)).toEqual(
      log.slice(0, 2),
    )
    const { stdout } = await cluster.cli(['audit', '--organization', 'seen'])
    expect(stdout).toMatch(/ApiKeyRevoked .*operator keys revoke/)
    expect(await cluster.cli(['audit', '--since', 'tomorrow'])).toMatchObject({ code: 1 })
  }, 60_000)

  it('never repeat a key that was given for an organization or an id', async () => {
    const { key } = cluster.owner.secret
    for (const args of [
      ['list', key],
      ['rotate', slug, key],
      ['revoke', slug, key],
    ]) {
      const { text, error } = await refused('keys', ...args)
      expect(text + JSON.stringify(error)).not.toContain(key)
    }
  }, 60_000)

  it('show a secret key once, saying so, and its use later', async () => {
    const made = await cluster.cli([
      'keys',
      'create',
      slug,
      '--name',
      'CI',
      '--type',
      'secret',
      '--scopes',
      '*',
    ])
    const key = /^sk_live_\S+$/m.exec(made.stdout)?.[0] ?? ''
    expect(made.stdout).toContain('shown this once')
    expect((await api('/v1/sessions', key)).status).toBe(200)
    const listed = await cluster.cli(['keys', 'list', slug])
    const json = await cluster.cli(['keys', 'list', slug, '--json'])
    expect(listed.stdout).toContain('CI')
    expect(listed.stdout + json.stdout).not.toContain(key)
    await eventually(async () => {
      const keys = await cluster.operate<(Key & { last_used_at: string | null })[]>(
        'keys',
        'list',
        slug,
      )
      expect(keys.find(({ name }) => name === 'CI')?.last_used_at).not.toBeNull()
    })
  })

  it('list keys as the API does', async () => {
    const keys = await cluster.operate<Key[]>('keys', 'list', slug)
    const { data } = await api(`/v1/organizations/${cluster.owner.organizationId}/api-keys`)
    const lasting = (all: unknown) =>
      JSON.parse(JSON.stringify(all, (name, value) => (name === 'last_used_at' ? 0 : value)))
    expect(lasting(keys)).toEqual(lasting(data))
  })

  it('make keys of every kind', async () => {
    const create = (...args: string[]) =>
      cluster.operate<Key>('keys', 'create', slug, '--name', 'Kind', ...args)
    expect(await create('--environment', 'test')).toMatchObject({
      type: 'secret',
      environment: 'test',
      scopes: ['sessions:read', 'sessions:update', 'fingerprints:read'],
      revealed_key: expect.stringMatching(/^sk_test_/),
    })
    expect(await create('--origins', 'https://a.example, https://*.b.example')).toMatchObject({
      type: 'publishable',
      environment: 'live',
      allowed_origins: ['https://a.example', 'https://*.b.example'],
    })
    expect(await create('--client-target', 'native-ios')).toMatchObject({
      type: 'publishable',
      client_target: 'native-ios',
      revealed_key: expect.stringMatching(/^pk_live_/),
    })
  })

  it('rotate and revoke by id', async () => {
    const old = await cluster.operate<Key>('keys', 'create', slug, '--name', 'Old')
    const next = await cluster.operate<Key>('keys', 'rotate', slug, old.id)
    expect(next).toMatchObject({
      name: 'Old',
      status: 'active',
      revealed_key: expect.stringMatching(/^sk_live_/),
    })
    expect((await refused('keys', 'rotate', slug, old.id)).error.code).toBe('request.conflict')
    const revoked = await cluster.operate<Key>('keys', 'revoke', slug, old.id)
    expect(revoked).toMatchObject({ id: old.id, status: 'revoked' })
    expect(revoked.revealed_key).toBeUndefined()
    expect((await api('/v1/sessions/sid_none', old.revealed_key ?? '')).status).toBe(401)
    expect((await api('/v1/sessions/sid_none', next.revealed_key ?? '')).status).toBe(404)
  })

  it('set limits, one at a time and back, and show them', async () => {
    const limits = (...args: string[]) =>
      cluster.operate<Organization>('org', 'limits', slug, ...args)
    expect(await limits('--secret', '777')).toMatchObject({
      secret_limit: 777,
      publishable_limit: null,
    })
    const { headers } = await api('/v1/sessions')
    expect(headers.get('x-ratelimit-limit')).toBe('777')
    expect(await limits('--publishable', '5')).toMatchObject({
      secret_limit: 777,
      publishable_limit: 5,
    })
    expect(await limits('--secret', 'default')).toMatchObject({
      secret_limit: null,
      publishable_limit: 5,
    })
    expect(await limits()).toMatchObject({ secret_limit: null, publishable_limit: 5 })
    const { stdout } = await cluster.cli(['org', 'limits', slug])
    expect(stdout).toMatch(/│ default \(600\) +│ 5 in 60 s +│/)
  })

  it('turn a capability on and off', async () => {
    const turn = (way: string) => cluster.operate<Organization>('org', way, slug, 'ip_rotation')
    expect((await turn('enable')).capabilities).toEqual(['ip_rotation'])
    expect((await turn('disable')).capabilities).toEqual([])
  })

  it('vouch for a service, and take that back', async () => {
    const { organizationId, secret } = cluster.owner
    const post = async (path: string, body: object) => {
      const headers = { authorization: `Bearer ${secret.key}`, 'content-type': 'application/json' }
      const request = { method: 'POST', headers, body: JSON.stringify(body) }
      const response = await cluster.fetch(0, path, request)
      const { data }: { data: { id: string } } = JSON.parse(await response.text())
      return data.id
    }
    const endpoint = {
      name: 'Approvals',
      url: 'https://acme.example/',
      event_types: ['gate.session.approved'],
    }
    const webhook_endpoint_id = await post(
      `/v1/organizations/${organizationId}/webhooks/endpoints`,
      endpoint,
    )
    const described = { name: 'Acme Mail', description: 'Mail.', website: 'https://acme.example' }
    await post('/v1/gate/services', {
      id: 'acme-mail',
      ...described,
      webhook_endpoint_id,
      discoverable: true,
    })
    const shown = () => api('/v1/gate/registry/acme-mail').then(({ data }) => data)
    const given = await cluster.operate<object>('gate', 'verify', 'acme-mail')
    expect(given).toMatchObject({ object: 'gate_service', branding: { verified: true } })
    expect(await shown()).toMatchObject({ branding: { verified: true } })
    const withdrawn = await cluster.cli(['gate', 'verify', 'acme-mail', '--withdraw'])
    expect(withdrawn).toMatchObject({ code: 0, stderr: '' })
    expect(withdrawn.stdout).toMatch(
      /│ acme-mail │ org_\w+ +│ live +│ active │ no +│ Acme Mail │ https:/,
    )
    expect(await shown()).toMatchObject({ branding: { verified: false } })
  })

  it('say what is missing when no server keeps the read models', async () => {
    await cluster.kill(0)
    const { text, error } = await refused('org', 'suspend', slug)
    expect(text).toContain('`projections`')
    expect(error).toMatchObject({ code: 'service.unavailable', retryable: true })
  })
})

function fail(): never {
  throw new Error('there is no organization')
}
