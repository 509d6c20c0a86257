import { globSync } from 'node:fs'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { encodeAddresses } from '../../infra/ip/data/file.ts'
import { indexRanges } from '../../infra/ip/data/ranges.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import {
  createOwnDatabase,
  type DebianPostgres,
  startDebianPostgres,
} from '../support/debian-postgres.ts'
import { visitAs } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { requestSignup } from '../support/gate-approve.ts'
import { needs } from '../support/needs.ts'
import { type PrintedCommand, printedCommands } from '../support/printed-commands.ts'
import { queryAt } from '../support/server-databases.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/test-projects.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { fastWebhooks } from '../support/webhook-world.ts'
import { openPrintedShell, type PrintedShell } from './printed-shell.ts'

const { describe, it } = needs('postgresql', 'shells')

const docker = 'docker build --file infra/deploy/image/Dockerfile --tag tidegate'
const compose = 'docker compose --file infra/deploy/compose.yaml'

/** Printed commands that this does not run, each with the reason. */
const notRun: Record<string, string> = {
  [`${docker} .`]: 'image.long.test.ts builds the image',
  [`${docker} --secret id=npmrc,src=HOME/.npmrc --secret id=ca.pem,src=/etc/ssl/certs/company.pem .`]:
    'needs a registry that wants a password',
  'docker run --detach --name tidegate --publish 127.0.0.1:8787:8787 --volume tidegate:/data --read-only --cap-drop ALL --stop-timeout 30 tidegate dev':
    'image.long.test.ts starts a container; other tests run `tidegate dev`',
  'docker exec tidegate cat /data/credentials.json': 'runs no command of Tidegate',
  [`${compose} up --build --detach --wait`]: 'image.long.test.ts starts the image',
  'infra/deploy/make-secrets': 'runs no command of Tidegate',
  'helm install tidegate infra/deploy/chart --values values.yaml':
    'chart.long.test.ts renders the chart',
  'kubectl create secret generic tidegate': 'needs a cluster',
  'pg_restore --no-owner --exit-on-error --dbname="$DATABASE_URL" tidegate.dump':
    'needs an empty database; dump-restore.long.test.ts runs it',
  'pg_dump --no-owner --schema-only --table=tidegate.gate_vault "$EMPTY_DATABASE_URL" | psql --quiet --set=ON_ERROR_STOP=1 "$DATABASE_URL"':
    'needs a database without the table; dump-restore.long.test.ts runs it',
  'tidegate data update': 'asks public websites',
  'tidegate migrate --adopt-log': 'needs Kafka; log-binding.long.test.ts runs it',
  'tidegate log move': 'needs Kafka; log-move.long.test.ts runs it',
  'tidegate org policy <org> --facts on': 'needs Kafka; facts-topic.long.test.ts runs it',
  'tidegate facts republish --since 2026-11-01T00:00:00Z':
    'needs Kafka; facts-topic.long.test.ts runs it',
  'tidegate serve': 'does not end; this test itself starts it',
  'tidegate serve --roles scoring,projections,webhooks':
    'does not end; log-move.long.test.ts runs it',
  'make run': 'does not end; quickstart.long.test.ts runs it',
  'tidegate gate dev-integrator': 'does not end; gate-cli.long.test.ts runs it',
  'tidegate signup demo-service': 'needs a person; gate-cli.long.test.ts approves a signup',
  'tidegate signup demo-service login': 'needs a person; gate-cli.long.test.ts approves a login',
  'tidegate signup list': 'needs a signup; gate-cli.long.test.ts runs it',
  'tidegate signup acme-mail --account-name Robin':
    'needs a person; gate-cli.long.test.ts approves a signup',
  'tidegate signup acme-mail login': 'needs a person; gate-cli.long.test.ts approves a login',
  'tidegate project ./my-view.ts --new': 'own-views.long.test.ts runs it',
  'tidegate project ./my-view.ts': 'does not end; own-views.long.test.ts runs it',
  'tidegate webhooks listen': 'does not end; webhooks-cli.long.test.ts runs it',
  'tidegate webhooks trigger': 'webhooks-cli.long.test.ts runs it beside a listener',
  'tidegate serve --take-over-log':
    'does not end, and needs Kafka; log-binding.long.test.ts runs it',
}

/** Commands without arguments that run as they are. All others of one or two words are only looked up in the help. */
const complete = [
  'migrate',
  'config check',
  'audit',
  'org list',
  'data status',
  'data-keys reseal',
  'rebuild sessions',
  'rebuild scoring',
]

const pages = ['README.md', ...globSync('docs/{guide,operate}/*.md', { cwd: root }).sort()]
const chart = ['templates/NOTES.txt', 'values.yaml'].map((name) => `infra/deploy/chart/${name}`)

const textOf = (file: string) => readFile(path.join(root, file), 'utf8')

/** Commands of the notes are lines that are set in, and their actions are values of the chart. */
async function chartCommands(file: string): Promise<PrintedCommand[]> {
  const text = await textOf(file)
  const lines = file.endsWith('.txt') ? (text.match(/^ {2}kubectl .*$/gm) ?? []) : []
  const filled = lines.map((line) =>
    line.replace('{{ .Release.Namespace }}', 'x').replace('{{ $name }}', 'x'),
  )
  return [
    ...filled.map((script) => ({ script: script.trim(), isBlock: false })),
    ...printedCommands(text),
  ]
}

describe('the commands that the docs, the chart and the README print', () => {
  const folder = temporaryFolder('printed')
  let postgres: DebianPostgres
  let cluster: Cluster
  let receiver: WebhookReceiver
  let shell: PrintedShell
  let organizations = 0
  let runs = 0
  const skipped: string[] = []
  /** In this order, so that the longer form comes first. */
  let values: [printed: string, value: string][] = []

  beforeAll(async () => {
    postgres = await startDebianPostgres()
    const url = await createOwnDatabase(postgres)
    await queryAt(url.replace('//tidegate:', '//postgres:'), [
      `create role serving login password 'secret'`,
      `create role analyst login password 'secret'`,
    ])
    cluster = await startCluster({
      database: { url, drop: async () => {} },
      env: { ...fastWebhooks, AGENT_LOOKUPS: 'off' },
    })
    const { owner, baseUrl, settings } = cluster
    receiver = await startWebhookReceiver()
    await cluster.operate('org', 'enable', owner.slug, 'ip_rotation')
    const types = ['session.fingerprint.calculated', 'gate.session.approved']
    const { id: endpointId } = await cluster.createEndpoint(receiver.url('/'), types)
    const { sessionId } = await visitAs(cluster, 1)
    for (const device of [2, 3]) await visitAs(cluster, device)
    await fillFolder()
    const serviceId = await cluster.createGateService(receiver.url('/'))
    const { id: gateSessionId } = await requestSignup(baseUrl, { service_id: serviceId })
    // The first consent page creates the organization of the server itself.
    expect((await fetch(`${baseUrl}/gate/consent/${gateSessionId}`)).status).toBe(200)
    const old = ['--name', 'Old', '--origins', 'https://shop.example']
    const key = await cluster.operate<{ id: string }>('keys', 'create', owner.slug, ...old)
    values = [
      ['docker exec <container> tidegate ...', 'docker exec tidegate tidegate --help'],
      ['tidegate events --open', 'tidegate events --open --topic tidegate.organizations.v1'],
      ['http://127.0.0.1:8787', baseUrl],
      ['https://tidegate.example', baseUrl],
      ['pk_live_...', owner.publishable.key],
      ['postgres://owner@...', `'${url}'`],
      ['tidegate …', 'tidegate --help'],
      [
        '--environment live --name "Ann Example"',
        '--environment live --name "Ann Example" --url http://127.0.0.1:8787',
      ],
      ['--out sessions.parquet --since 7d', '--out more-sessions.parquet --since 7d'],
      ['npm run tidegate -- …', 'npm run tidegate -- --help'],
      ['"http","authority":"localhost:3000"', '"https","authority":"shop.example"'],
      ['policy acme', `policy ${owner.slug}`],
      ['<session>', sessionId],
      ['/backups/data-keys-2026-11-23', './monthly-data-keys'],
      // These need a superuser, as the page says.
      [`psql "$DATABASE_URL" -c 'vacuum (full`, `psql "$DB" -c 'vacuum (full`],
      [`psql "$DATABASE_URL" -c 'select pg_switch_wal()`, `psql "$DB" -c 'select pg_switch_wal()`],
      [
        '# make the request',
        `until grep -q read.sessions .tidegate/postgres/server.log; do curl -s -H "Authorization: Bearer $SECRET_KEY" "${baseUrl}/v1/sessions?limit=5" > /dev/null; done`,
      ],
      ['--analysts <role>', '--analysts analyst'],
      ['--roles <role>', '--roles api'],
      ['[--secret n] [--publishable n]', '--secret 600 --publishable 3000'],
      ['[--add domain [--name "Acme"]] [--remove domain]', '--add bots.example --name "Acme"'],
      ['[<org>] [--endpoint we_...] [--limit n]', `<org> --endpoint we_... --limit 10`],
      ['wdlv_...', await newestDelivery()],
      ['evt_... [--endpoint we_...]', `${await newestEvent()} --endpoint we_...`],
      ['<gacct_... or gate_...>', gateSessionId],
      ['<service>', serviceId],
      ['<topic>', 'tidegate.organizations.v1'],
      ['<name>', 'sessions'],
      ['<file>', './data-keys'],
      ['<key>', key.id],
      ['<org>', owner.slug],
      ['we_...', endpointId],
      ['org_...', owner.organizationId],
      ['sid_...', sessionId],
      ['view_...', await createView()],
      ['--sessions 5000', '--sessions 5'],
      ['--rate N', '--rate 5 --sessions 5'],
      ['--rate 5 --base-url', '--rate 5 --sessions 5 --base-url'],
    ]
    shell = await openPrintedShell({
      folder,
      env: {
        ...settings,
        SECRET_KEY: owner.secret.key,
        SESSION_ID: sessionId,
        SID: sessionId,
        URL: baseUrl,
        KEY: owner.secret.key,
        ORG: owner.organizationId,
        ORGANIZATION_ID: owner.organizationId,
        ENDPOINT: endpointId,
        DB: superuserUrl(),
      },
      notRun: Object.keys(notRun)
        .filter((command) => command.startsWith('tidegate '))
        .map((command) => command.slice('tidegate '.length)),
    })
    await shell.bash('tidegate data-keys backup ./data-keys')
  }, 180_000)

  afterAll(async () => {
    await cluster?.stop()
    await receiver?.close()
    await postgres?.stop()
  })

  const superuserUrl = () =>
    (cluster.settings.DATABASE_URL ?? '').replace('//tidegate:', '//postgres:')

  /** Returns the id of an event that the receiver got. */
  const newestEvent = () =>
    eventually(async () => {
      const [sent] = receiver.requests
      if (!sent) throw new Error('no webhook came')
      return String(sent.headers['webhook-id'])
    })

  async function createView(): Promise<string> {
    const { owner, baseUrl } = cluster
    const response = await fetch(`${baseUrl}/v1/organizations/${owner.organizationId}/views`, {
      method: 'POST',
      headers: { authorization: `Bearer ${owner.secret.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Bots at login', query: 'verdict=bot' }),
    })
    const { data } = await response.json()
    return data.id
  }

  async function newestDelivery(): Promise<string> {
    await newestEvent()
    const path = `/v1/organizations/${cluster.owner.organizationId}/webhooks/deliveries`
    const [delivery] = await cluster.read<{ id: string }[]>(path)
    return delivery?.id ?? ''
  }

  /** Writes the files that the commands read from their folder. */
  async function fillFolder(): Promise<void> {
    const { owner, baseUrl } = cluster
    const data = path.join(folder, '.tidegate')
    await mkdir(path.join(data, 'postgres'), { recursive: true })
    const keyOf = async (target: string) => {
      const args = ['--name', target, '--client-target', target]
      const create = ['keys', 'create', owner.slug, ...args]
      return (await cluster.operate<{ revealed_key: string }>(...create)).revealed_key
    }
    const ofEnvironment = {
      publishable_key: owner.publishable.key,
      ios_publishable_key: await keyOf('native-ios'),
      android_publishable_key: await keyOf('native-android'),
    }
    const credentials = {
      base_url: baseUrl,
      organization_id: owner.organizationId,
      live: { ...ofEnvironment, secret_key: owner.secret.key },
      test: { ...ofEnvironment, secret_key: 'sk_test_x' },
    }
    await writeFile(path.join(data, 'credentials.json'), JSON.stringify(credentials, null, 2))
    await writeFile(path.join(data, 'database-url'), superuserUrl())
    await symlink(
      path.join(path.dirname(postgres.ca), 'log'),
      path.join(data, 'postgres/server.log'),
    )
    await mkdir(path.join(folder, 'files'))
    const starts = [0x08080000, 0x08080200, 0x08080400]
    const ranges = (name: string) => ({
      ipv4: starts.map((start) => ({ start, end: start + 255, name })),
      ipv6: [],
    })
    await writeFile(
      path.join(data, 'addresses.bin'),
      encodeAddresses({
        head: {
          format: 'tidegate addresses 2',
          made: '2026-11-01',
          sources: [{ name: 'before', subject: 'country', licence: 'none', date: '2026-11-01' }],
        },
        country: indexRanges(ranges('DE')),
        network: indexRanges(ranges('64500 Before')),
        labels: indexRanges(ranges('tor Tor')),
      }),
    )
    await writeFile(path.join(folder, 'files/tor.txt'), '8.8.0.0/24\n8.8.2.0/24\n8.8.4.0/24\n')
    await mkdir(path.join(folder, 'infra/deploy'), { recursive: true })
    const noted = '#!/bin/sh\necho infra/deploy/make-secrets >> "$PRINTED_FOLDER/skipped"\n'
    await writeFile(path.join(folder, 'infra/deploy/make-secrets'), noted, { mode: 0o755 })
  }

  /** The record that a command is to skip is there from just before it. */
  async function withForeignRecord(script: string): Promise<string> {
    const printed = 'tidegate.sessions.v1 3 1742'
    if (!script.includes(printed)) return script
    const foreign = { topic: 'tidegate.sessions.v1', key: 'x', headers: {} } as const
    const log = await cluster.log()
    const [at] = await log.append([{ ...foreign, value: Buffer.from('not ours') }])
    return script.replace(printed, `${at?.topic} ${at?.partition} ${at?.offset}`)
  }

  /** An organization is created more than once in these pages. */
  function withNewSlug(script: string): string {
    if (script.includes('--slug acme')) organizations++
    const slug = organizations === 0 ? cluster.owner.slug : `acme-${organizations}`
    return script.replaceAll(/(slug|create|login) acme\b(?!-)/g, `$1 ${slug}`)
  }

  /** A service, an agent's domain and a view are added once. */
  function withNewIds(script: string): string {
    runs++
    return script
      .replaceAll('"id": "acme-mail"', `"id": "acme-mail-${runs}"`)
      .replaceAll('"agent.example"', `"agent-${runs}.example"`)
      .replaceAll('"Bots abroad"', `"Bots abroad ${runs}"`)
  }

  const isName = (script: string) => /^tidegate( [a-z][a-z-]*){1,2}$/.test(script)

  async function runBoth({ script: printed, isBlock }: PrintedCommand): Promise<void> {
    if (printed.trim() in notRun) {
      skipped.push(printed.trim())
      return
    }
    let script = printed
    if (isName(printed) && !complete.includes(printed.slice('tidegate '.length)))
      script += ' --help'
    if (printed === 'npm run -s tidegate --') script += ' --help'
    for (const [text, value] of values) script = script.replaceAll(text, value)
    script = await withForeignRecord(withNewSlug(script))
    // A block leaves files and keys behind that the second run must not find.
    await shell.bash(withNewIds(script))
    await shell.zsh(withNewIds(isBlock ? `setopt clobber\n${script}` : script))
  }

  async function runAll(commands: PrintedCommand[]): Promise<void> {
    const seen = new Set<string>()
    const failed: string[] = []
    for (const command of commands) {
      if (seen.has(command.script)) continue
      seen.add(command.script)
      await runBoth(command).catch((error: Error) => failed.push(error.message))
    }
    expect(failed).toEqual([])
  }

  it.each(pages)(
    'of %s run in bash and zsh',
    async (page) => runAll(printedCommands(await textOf(page))),
    600_000,
  )

  it.each(chart)(
    'of %s run in bash and zsh',
    async (file) => runAll(await chartCommands(file)),
    120_000,
  )

  it('are all run, but for those with a reason', async () => {
    const noted = (await shell.skipped()).map((line) => line.replaceAll(folder, 'HOME'))
    const all = new Set([...skipped, ...noted].map((line) => line.replace(/ --from-literal.*/, '')))
    expect([...all].sort()).toEqual(Object.keys(notRun).sort())
  })
})
