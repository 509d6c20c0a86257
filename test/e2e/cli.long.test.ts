import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { withoutUse } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'

interface Organization {
  id: string
  slug: string
  status: string
  secret_limit: number | null
  publishable_limit: number | null
  max_key_days: number | null
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
  status: string
  last_used_at: string | null
  revealed_key?: string
}

describe('the operator commands', () => {
  let cluster: Cluster
  let slug = ''

  beforeAll(async () => {
    cluster = await startCluster()
    slug = cluster.owner.slug
  }, 60_000)
  afterAll(() => cluster?.stop())

  async function refused(...args: string[]) {
    const [text, json] = await Promise.all([cluster.cli(args), cluster.cli([...args, '--json'])])
    expect([text.code, text.stdout, json.code, json.stderr]).toEqual([1, '', 1, ''])
    const { error }: { error: { code: string } } = JSON.parse(json.stdout)
    return { text: text.stderr, error }
  }

  async function printed(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await cluster.cli(args)
    expect([code, stderr]).toEqual([0, ''])
    return stdout
  }

  const createKey = (...args: string[]) => cluster.operate<Key>('keys', 'create', slug, ...args)
  const statusFor = async (path: string, key = '') => (await cluster.ask(path, { key })).status

  it('make an organization, show it as a table and as the API does', async () => {
    const made = await printed('org', 'create', '--name', 'Acme', '--slug', 'acme')
    expect(made).toMatch(/│ org_[0-9a-z]{26} │ acme +│ Acme +│ active +│ default/)
    const all = await cluster.operate<Organization[]>('org', 'list')
    expect(all.map((one) => one.slug)).toEqual(['acme', slug])
    const listed = await printed('org', 'list')
    for (const { id } of all) expect(listed).toContain(id)
    const own = all.find((one) => one.slug === slug)
    const { secret_limit, publishable_limit, max_key_days, capabilities, ...shown } = own ?? {}
    expect([secret_limit, publishable_limit, max_key_days]).toEqual([null, null, null])
    expect(capabilities).toEqual([])
    expect(await cluster.read(`/v1/organizations/${own?.id}`)).toEqual({
      ...shown,
      data_policy: expect.any(Object),
      rate_limits: {
        secret: expect.any(Number),
        publishable: expect.any(Number),
        scored_requests: 12_000,
        console: 600,
      },
    })
  })

  it('set what is recorded of visitors and for how long, as the API shows it', async () => {
    const days = ['--sessions', '90', '--visitors', 'forever']
    const recorded = ['--addresses', 'short', '--minimal-mode', 'allow']
    const set = await printed('org', 'policy', slug, ...days, ...recorded)
    expect(set).toMatch(/│ sessions +│ 90 days +│/)
    expect(set).toMatch(/│ visitors +│ forever +│/)
    expect(set).toContain('IP addresses: short. Minimal mode: allowed.')
    const policy = {
      session_days: 90,
      decision_days: null,
      visitor_days: 0,
      webhook_days: null,
      shortens_addresses: true,
      allows_minimal_mode: true,
      changed_at: expect.any(String),
    }
    expect(await cluster.operate('org', 'policy', slug)).toMatchObject({
      ...policy,
      kept_days: { session_days: 90, visitor_days: 0 },
    })
    const { organizationId } = cluster.owner
    expect(await cluster.read(`/v1/organizations/${organizationId}`)).toMatchObject({
      data_policy: policy,
    })
    const back = ['--addresses', 'full', '--minimal-mode', 'refuse']
    const lengths = ['--sessions', 'default', '--visitors', 'default']
    expect(await cluster.operate('org', 'policy', slug, ...lengths, ...back)).toMatchObject({
      session_days: null,
      visitor_days: null,
      shortens_addresses: false,
    })
  }, 60_000)

  it('print who did what, in an organization or in all', async () => {
    const seen = ['org', 'create', '--name', 'Seen', '--slug', 'seen']
    const { id } = await cluster.operate<Organization>(...seen)
    const made = await cluster.operate<Key>('keys', 'create', 'seen', '--name', 'CI')
    await cluster.operate('keys', 'revoke', 'seen', made.id)
    const audit = (...args: string[]) => cluster.operate<Entry[]>('audit', ...args)
    const log = await audit('--organization', 'seen')
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
    expect(await audit('--limit', '1')).toEqual([revoked])
    expect(await audit('--organization', id, '--since', log[1]?.occurred_at ?? '')).toEqual(
      log.slice(0, 2),
    )
    expect(await printed('audit', '--organization', 'seen')).toMatch(
      /ApiKeyRevoked .*operator keys revoke/,
    )
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
    const secret = ['--name', 'CI', '--type', 'secret', '--scopes', '*']
    const made = await printed('keys', 'create', slug, ...secret)
    const key = /^sk_live_\S+$/m.exec(made)?.[0] ?? ''
    expect(made).toContain('shown only once')
    expect(await statusFor('/v1/sessions', key)).toBe(200)
    const list = ['keys', 'list', slug]
    expect((await printed(...list)) + (await printed(...list, '--json'))).not.toContain(key)
    await eventually(async () => {
      const keys = await cluster.operate<Key[]>(...list)
      expect(keys.find(({ name }) => name === 'CI')?.last_used_at).not.toBeNull()
    })
    const { organizationId } = cluster.owner
    expect(withoutUse(await cluster.operate(...list))).toEqual(
      withoutUse(await cluster.read(`/v1/organizations/${organizationId}/api-keys`)),
    )
  })

  it.each([
    [
      ['--environment', 'test'],
      {
        type: 'secret',
        environment: 'test',
        scopes: ['sessions:read', 'sessions:update', 'fingerprints:read'],
        revealed_key: expect.stringMatching(/^sk_test_/),
      },
    ],
    [
      ['--origins', 'https://a.example, https://*.b.example'],
      {
        type: 'publishable',
        environment: 'live',
        allowed_origins: ['https://a.example', 'https://*.b.example'],
      },
    ],
    [
      ['--client-target', 'native-ios'],
      {
        type: 'publishable',
        client_target: 'native-ios',
        revealed_key: expect.stringMatching(/^pk_live_/),
      },
    ],
  ])('make keys of every kind: %j', async (args, key) => {
    expect(await createKey('--name', 'Kind', ...args)).toMatchObject(key)
  })

  it('rotate and revoke by id', async () => {
    const old = await createKey('--name', 'Old')
    const next = await cluster.operate<Key>('keys', 'rotate', slug, old.id)
    expect(next).toMatchObject({ name: 'Old', status: 'active' })
    expect((await refused('keys', 'rotate', slug, old.id)).error.code).toBe('request.conflict')
    const revoked = await cluster.operate<Key>('keys', 'revoke', slug, old.id)
    expect(revoked).toMatchObject({ id: old.id, status: 'revoked' })
    expect(revoked.revealed_key).toBeUndefined()
    expect(await statusFor('/v1/sessions/sid_none', old.revealed_key)).toBe(401)
    expect(await statusFor('/v1/sessions/sid_none', next.revealed_key)).toBe(404)
  })

  it('set limits, one at a time and back, and show them', async () => {
    const limits = async (...args: string[]) => {
      const set = await cluster.operate<Organization>('org', 'limits', slug, ...args)
      return [set.secret_limit, set.publishable_limit]
    }
    expect(await limits('--secret', '777')).toEqual([777, null])
    expect((await cluster.ask('/v1/sessions')).headers.get('x-ratelimit-limit')).toBe('777')
    expect(await limits('--publishable', '5')).toEqual([777, 5])
    expect(await limits('--secret', 'default')).toEqual([null, 5])
    expect(await limits()).toEqual([null, 5])
    expect(await printed('org', 'limits', slug)).toMatch(/│ default \(600\) +│ 5 in 60 s +│/)
  })

  it('turn a capability on and off', async () => {
    const turn = (way: string) => cluster.operate<Organization>('org', way, slug, 'ip_rotation')
    expect((await turn('enable')).capabilities).toEqual(['ip_rotation'])
    expect((await turn('disable')).capabilities).toEqual([])
  })

  it('vouch for a service, and take that back', async () => {
    await cluster.createGateService('https://acme.example/', { id: 'acme-mail' })
    const isShown = async (verified: boolean) =>
      expect(await cluster.read('/v1/gate/registry/acme-mail')).toMatchObject({
        branding: { verified },
      })
    expect(await cluster.operate('gate', 'verify', 'acme-mail')).toMatchObject({
      object: 'gate_service',
      branding: { verified: true },
    })
    await isShown(true)
    expect(await printed('gate', 'verify', 'acme-mail', '--withdraw')).toMatch(
      /│ acme-mail │ org_\w+ +│ live +│ active │ no +│ Acme Mail │ https:/,
    )
    await isShown(false)
  })

  it('say what is missing when no server keeps the read models', async () => {
    await cluster.kill(0)
    const { text, error } = await refused('org', 'suspend', slug)
    expect(text).toContain('`projections`')
    expect(error).toMatchObject({ code: 'service.unavailable', retryable: true })
  })
})
