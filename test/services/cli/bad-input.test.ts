import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Command } from 'commander'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { defineData } from '../../../services/cli/data/command.ts'
import { defineDataKeys } from '../../../services/cli/data-keys.ts'
import { defineEvents } from '../../../services/cli/events.ts'
import { defineExport } from '../../../services/cli/export/command.ts'
import { reportFailure } from '../../../services/cli/failure.ts'
import { defineGate } from '../../../services/cli/gate/command.ts'
import { defineLearn } from '../../../services/cli/learn.ts'
import { defineLog } from '../../../services/cli/log.ts'
import { defineMigrate } from '../../../services/cli/migrate.ts'
import { defineAudit } from '../../../services/cli/operator/audit.ts'
import { defineConsole } from '../../../services/cli/operator/console.ts'
import { defineFacts } from '../../../services/cli/operator/facts-topic.ts'
import { defineKeys } from '../../../services/cli/operator/keys.ts'
import { defineMarks } from '../../../services/cli/operator/marks.ts'
import { defineOrganizations } from '../../../services/cli/operator/organizations.ts'
import { defineVisitors } from '../../../services/cli/operator/visitors.ts'
import { defineProject } from '../../../services/cli/project/command.ts'
import { defineRebuild } from '../../../services/cli/rebuild.ts'
import { defineRescore } from '../../../services/cli/rescore/command.ts'
import { defineRestore } from '../../../services/cli/restore.ts'
import { defineConfig, defineDev, defineServe } from '../../../services/cli/serve.ts'
import { defineSignup } from '../../../services/cli/signup/command.ts'
import { defineSimulate } from '../../../services/cli/simulate/command.ts'
import { configureUsageErrors } from '../../../services/cli/usage.ts'
import { defineWebhooks } from '../../../services/cli/webhooks/command.ts'
import { createOrganization } from '../../../services/organizations/commands.ts'
import { projections } from '../../../services/server/dependencies.ts'
import { openServiceWorld } from '../../support/service-world.ts'
import { root } from '../../support/test-projects.ts'

const definitions: Record<string, (command: Command) => void> = {
  dev: defineDev,
  serve: defineServe,
  config: defineConfig,
  migrate: defineMigrate,
  org: defineOrganizations,
  keys: defineKeys,
  facts: defineFacts,
  console: defineConsole,
  audit: defineAudit,
  visitors: defineVisitors,
  marks: defineMarks,
  gate: defineGate,
  simulate: defineSimulate,
  signup: defineSignup,
  webhooks: defineWebhooks,
  rebuild: defineRebuild,
  project: defineProject,
  rescore: defineRescore,
  learn: defineLearn,
  restore: defineRestore,
  data: defineData,
  'data-keys': defineDataKeys,
  log: defineLog,
  export: defineExport,
  events: defineEvents,
}

function tidegate(): Command {
  const program = configureUsageErrors(new Command('tidegate'), { json: true })
  for (const [name, define] of Object.entries(definitions)) define(program.command(name))
  return program
}

/** Returns the full names of all commands with an action, such as `org list` or `events`. */
function commandsOf(command: Command, name = ''): string[] {
  if (name && command.commands.length === 0) return [name]
  return command.commands.flatMap((child) => commandsOf(child, `${name} ${child.name()}`.trim()))
}
const commands = commandsOf(tidegate())

/** Runs a command line in this process, and returns its exit code and output. */
async function run(line: string): Promise<[code: unknown, printed: string]> {
  const printed: unknown[] = []
  for (const method of ['log', 'error'] as const)
    vi.spyOn(console, method).mockImplementation((text) => void printed.push(text))
  await tidegate()
    .parseAsync(line.split(' '), { from: 'user' })
    .catch((error: unknown) => reportFailure(error, { json: false }))
  const { exitCode } = process
  process.exitCode = 0
  return [exitCode, printed.join('\n')]
}

const world = await openServiceWorld({ projections })
await createOrganization(world.deps, { name: 'Acme', slug: 'acme' })
const TIDEGATE_MASTER_KEYS = randomBytes(32).toString('base64')
const settings = { DATABASE_URL: world.url, TIDEGATE_MASTER_KEYS, DATA_DIR: '/nowhere' }
beforeAll(() => {
  for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value)
})
afterEach(() => vi.restoreAllMocks())
afterAll(async () => {
  vi.unstubAllEnvs()
  await world.close()
})

const time =
  'an age, a date, or a time with a time zone: 7d, 24h, 90m, 2026-11-23, 2026-11-23T12:00:00Z.'
const days = 'a whole number of days, "forever" or "default".'
const units = 'a whole number of units per 60 seconds, or "default".'
const positive = 'a whole number above 0.'
const count = 'a whole number from 1 to 99999.'
const environment = 'one of live, test.'

/** Command lines whose last option has an invalid value, with the values that it accepts. */
const values: [line: string, expected: string][] = [
  ['org limits acme --secret -1', units],
  ['org limits acme --publishable lots', units],
  ['org policy acme --sessions 0', days],
  ['org policy acme --decisions 1.5', days],
  ['org policy acme --visitors never', days],
  ['org policy acme --webhooks -7', days],
  ['org policy acme --addresses half', 'one of full, short.'],
  ['org policy acme --minimal-mode yes', 'one of allow, refuse.'],
  ['org policy acme --facts maybe', 'one of on, off.'],
  ['keys create acme --name X --type other', 'one of secret, publishable.'],
  ['keys create acme --name X --environment prod', environment],
  ['keys create acme --name X --client-target tv', 'one of browser, native-ios, native-android.'],
  ['facts republish --since yesterday', time],
  ['console login acme --role boss', 'one of viewer, analyst, admin.'],
  ['console login acme --environment prod', 'one of live, test, both.'],
  ['audit --limit 0', count],
  ['audit --since yesterday', time],
  ['marks import x.csv --environment prod', environment],
  ['marks export --environment prod', environment],
  ['marks export --since yesterday', time],
  ['gate dev-integrator --port 70000', 'a port from 0 to 65535.'],
  ['gate dev-integrator --fail nope', 'one of never, 500, refuse, garbage, timeout.'],
  ['simulate --sessions 0', positive],
  ['simulate --concurrency 0', positive],
  ['simulate --rate x', positive],
  ['simulate --bots 2', 'from 0 to 1.'],
  ['simulate --returning x', 'from 0 to 1.'],
  ['simulate --environment prod', environment],
  ['signup acme --timeout 0', 'a whole number of seconds from 1 to 99999.'],
  ['signup acme --metadata nope', 'key=value.'],
  ['webhooks listen --port 70000', 'a port from 0 to 65535.'],
  ['webhooks listen --status 100', 'a status from 200 to 599.'],
  ['webhooks listen --event-types webhook.test', 'one of session.fingerprint.calculated, session'],
  ['webhooks listen --environment prod', environment],
  ['webhooks trigger --endpoint foo', 'the id of an endpoint (we_...).'],
  ['webhooks trigger --organization foo', 'the id of an organization (org_...).'],
  ['webhooks redeliver x --endpoint foo', 'the id of an endpoint (we_...).'],
  ['webhooks deliveries --endpoint WE_1', 'the id of an endpoint (we_...).'],
  ['webhooks deliveries --limit 100000', count],
  ['webhooks deliveries --status failed,lost', 'one of pending, succeeded, failed, skipped.'],
  ['webhooks deliveries --session vid_1', 'the id of a session (sid_...).'],
  ['webhooks deliveries --session gate_1', 'the id of a signup (gate_...).'],
  ['webhooks resend we_1 --since yesterday', time],
  ['webhooks resend we_1 --since 7d --until now', time],
  ['rescore --model x --since yesterday', time],
  ['rescore --model x --until now', time],
  [
    'rescore --model x --at 7d',
    'a date, or a time with a time zone: 2026-11-23, 2026-11-23T12:00:00Z.',
  ],
  ['rescore --model x --environment prod', environment],
  ['learn --port x', 'a port from 0 to 65535.'],
  ['data update --only nope', 'one of country, network, iporigin, clouds, cdns, tor, relay, bots.'],
  ['data update --without nope', 'one of country, network, iporigin, clouds, cdns, tor, relay'],
  ['export sessions --out x.csv --format xlsx', 'one of parquet, jsonl, csv.'],
  ['export sessions --out x.csv --since yesterday', time],
  ['export sessions --out x.csv --until now', time],
  ['export sessions --out x.csv --environment prod', environment],
  ['export events --out x.csv --topic nope', 'one of tidegate.collect.v1, '],
  ['events --topic x --type Nope', 'an event type, such as SessionScored.'],
  ['export events --out x.csv --topic tidegate.sessions.v1 --type Nope', 'an event type'],
  ['simulate --clients web', 'weights such as web=70,ios=15,android=15.'],
  ['simulate --attack ddos', 'one of credential-stuffing, fake-signups, scraping, carding.'],
  ['learn --host 999.1.1.1', 'an IP address of this machine or localhost.'],
  ['events --topic x --partition x', 'a whole number.'],
  ['events --topic x --offset -1', 'a whole number.'],
  ['events --topic x --limit x', 'a whole number.'],
  ['events --topic x --since yesterday', time],
  ['events --topic x --organization foo', 'the id of an organization (org_...).'],
]

const noOrganization = 'organization: no such id or slug; list them with "tidegate org list"'
const noKey = 'key: no such id (key_...) in this organization; list them with "tidegate keys list"'
const noCredentials = 'is missing, and DATA_DIR (/nowhere) has no credentials.json: start'

/** Command lines with other errors, and a part of the error message. */
const otherErrors: [line: string, message: string][] = [
  ['dev extra', "too many arguments for 'dev'. Expected 0 arguments but got 1: extra."],
  ['serve extra', "too many arguments for 'serve'. Expected 0"],
  ['config check --roles all', '--roles must be from collect, scoring, projections, api, '],
  ['org grow', "unknown command 'grow'"],
  ['org create --name X', "required option '--slug <slug>' not specified"],
  ['org create --slug x', "required option '--name <name>' not specified"],
  ['org create --name X --slug X', '--slug must be 1-63 lower-case letters, digits and hyphens'],
  ['org create --name X --slug acme', 'The slug acme is taken.'],
  ['org list extra', "too many arguments for 'list'. Expected 0"],
  ['org suspend', "missing required argument 'organization'"],
  ['org suspend nobody', noOrganization],
  ['org reactivate nobody', noOrganization],
  ['org limits nobody', noOrganization],
  ['org policy nobody', noOrganization],
  ['org policy acme --sessions 1', '--sessions must be 2 to 36500 days, for ever, or the default'],
  ['org policy acme --webhooks 31', '--webhooks must be 7 to 30 days, or the default'],
  ['org policy acme --facts on', '--facts needs Kafka as the log; with the embedded log, query'],
  [
    'org policy acme --hidden-facts nope',
    '--hidden-facts must be some of client_user_id, visitor_id, model, ',
  ],
  ['org agents nobody', noOrganization],
  [
    'org agents acme --add https://a.example/',
    '--add must be a domain such as agent.example, with its port unless that is',
  ],
  ['simulate --attack carding --bots 1', "'--attack <name>' cannot be used with option '--bots"],
  ['simulate --base-url nope', "'--base-url <url>' argument is invalid. It must start with http"],
  [
    'console login acme --role admin --environment live --name Ann --url nope',
    "'--url <url>' argument is invalid. It must start with http",
  ],
  ['org agents acme --name A', '--name needs --add: it names the directory'],
  ['org agents acme --remove a.example', 'The organization has no such agent directory.'],
  ['org enable nobody ip_rotation', noOrganization],
  ['org enable acme', "missing required argument 'capability'"],
  ['org enable acme nope', 'capability must be one of ip_rotation'],
  ['org disable acme nope', 'capability must be one of ip_rotation'],
  ['keys create acme', "required option '--name <name>' not specified"],
  ['keys create nobody --name X', noOrganization],
  [
    'keys create acme --name X --scopes sessions:read',
    '--type is required: secret, because scopes are given',
  ],
  ['keys create acme --name X --type secret --scopes nope', 'possible values: *, sessions:list, '],
  [
    'keys create acme --name X --type secret --scopes ,',
    "option '--scopes <list>' argument ',' is invalid. It must have at least one value.",
  ],
  [
    'webhooks deliveries --status ,',
    "option '--status <list>' argument ',' is invalid. It must have at least one value.",
  ],
  [
    'keys create acme --name X --origins ,',
    "option '--origins <list>' argument ',' is invalid. It must have at least one value.",
  ],
  [
    'keys create acme --name X --type publishable --scopes *',
    '--scopes is not allowed: secret keys only',
  ],
  [
    'keys create acme --name X --origins nope',
    '--origins must be an https origin or https://*.host',
  ],
  ['keys list', "missing required argument 'organization'"],
  ['keys list nobody', noOrganization],
  ['keys rotate acme key_1', noKey],
  ['keys rotate nobody key_1', noOrganization],
  ['keys revoke acme', "missing required argument 'key'"],
  ['keys revoke acme key_1', noKey],
  ['facts republish', "required option '--since <time>' not specified"],
  ['console login acme', "required option '--role <role>' not specified"],
  ['console login acme --role admin --environment live', "required option '--name <name>'"],
  ['console login nobody --role admin --environment live --name Ann', noOrganization],
  ['console login acme --role admin --environment live --name Ann', 'PUBLIC_URL is not set: pass'],
  ['audit --organization nobody', noOrganization],
  ['visitors explain', "missing required argument 'session'"],
  ['visitors explain sid_1', 'No session with this id has a visitor.'],
  ['marks import x.csv', "required option '--organization <organization>' not specified"],
  [
    'marks import README.md --organization acme',
    'line 1, session_id must be one of the columns session_id, label, reason',
  ],
  ['marks import /none.csv --organization acme', '/none.csv: no such file or folder'],
  ['marks import services --organization acme', 'services: it is a folder, not a file'],
  ['rescore --model /none.json', '/none.json: no such file or folder'],
  ['data-keys backup /none/x', '/none/x: no such file or folder'],
  ['data-keys restore /none', '/none: no such file or folder'],
  ['export sessions --out /none/x.csv', '/none/x.csv.part: no such file or folder'],
  ['export sessions --out x.csv --since 1d --until 2d', '--since must be earlier than --until'],
  ['project /none/x.ts --new', '/none/x.ts: no such file or folder'],
  ['events --topic tidegate.sessions.v1 --partition 99', '--partition must be 0–2, got 99'],
  [
    'events --topic tidegate.collect.v1 --type SessionScored',
    '--topic must be tidegate.sessions.v1 for SessionScored, got "tidegate.collect.v1"',
  ],
  ['marks export --organization nobody', noOrganization],
  ['gate verify', "missing required argument 'service'"],
  ['gate verify nope', 'service: no organization has a service of this id.'],
  ['gate verify tidegate', 'tidegate is built in and always verified.'],
  ['gate erase gacct_1', 'No Gate account, signup or login has this id.'],
  ['gate dev-integrator --service-id A', "option '--service-id <id>': 'A' is not a service id"],
  ['simulate', `--base-url ${noCredentials}`],
  ['simulate --open-loop', '--open-loop needs --rate'],
  ['simulate --clients tv=1', 'It must be weights such as web=70,ios=15,android=15.'],
  ['simulate --clients web=0', 'At least one weight must be above 0.'],
  ['signup', "missing required argument 'service'"],
  ['signup A', "argument '<service>': 'A' is not a service id. An id has 3 to 32 lower"],
  ['signup acme logout', 'Allowed choices are login.'],
  ['signup acme login --timeout 5', "option '--timeout <seconds>' cannot be used with login"],
  ['signup list --metadata a=b', "option '--metadata <key=value>' cannot be used with list"],
  ['signup acme --stdout --json', "option '--stdout' cannot be used with option '--json'"],
  ['signup acme --stdout --env-file x', "cannot be used with option '--env-file <path>'"],
  ['webhooks listen --no-register', '--no-register needs --secret'],
  ['webhooks trigger nope', 'It must be one of webhook.test, session.fingerprint.calculated, '],
  ['webhooks trigger', `--secret-key ${noCredentials}`],
  ['webhooks redeliver foo', 'It must be the id of an event (evt_...).'],
  [`webhooks redeliver evt_${'0'.repeat(26)}`, 'no such event; events are kept for 30 days.'],
  ['webhooks deliveries nobody', noOrganization],
  [`webhooks deliveries --endpoint we_${'0'.repeat(32)}`, 'endpoint: no such id.'],
  ['webhooks attempts foo', 'It must be the id of a delivery (wdlv_...).'],
  [`webhooks attempts wdlv_${'0'.repeat(32)}`, 'no such id; deliveries are kept for 30 days.'],
  [`webhooks resend we_${'0'.repeat(32)}`, "required option '--since <time>' not specified"],
  [`webhooks resend we_${'0'.repeat(32)} --since 7d`, 'endpoint: no such id.'],
  [
    'rebuild nope',
    'no projection "nope": it must be one of erasures, organizations, policies, sessions, ',
  ],
  ['rebuild sessions --workers 0', '--workers must be 1–99, got "0"'],
  ['project /none.ts', 'Cannot load /none.ts: Cannot find module'],
  ['project package.json', 'package.json is not a valid view:'],
  ['project README.md --new', 'README.md: the file already exists'],
  ['rescore', '--model is missing: "'],
  ['rescore --model package.json', 'signals is required'],
  ['rescore --model x --switch --back', '--switch and --back cannot be combined.'],
  [
    'rescore --model x --organization a --everybody',
    '--organization and --everybody cannot be combined',
  ],
  [
    'rescore --back --model x',
    '--back cannot be combined with --model: it returns to the previous model.',
  ],
  [
    'rescore --back',
    '--organization or --everybody is missing: --everybody means all organizations without',
  ],
  ['rescore --model x --switch --reason y', '--organization or --everybody is missing'],
  ['rescore --back --everybody', '--reason is missing.'],
  ['rescore --back --everybody --reason x', 'There is no earlier model to go back to.'],
  ['rescore --model x --reason y', '--at and --reason need --switch or --back.'],
  ['rescore --print-model --organization nobody', noOrganization],
  ['restore extra', "too many arguments for 'restore'. Expected 0"],
  ['data update --from /none', 'not updated: Tor: ENOENT: no such file or directory, scan'],
  ['data status extra', "too many arguments for 'status'. Expected 0"],
  ['data-keys backup', "missing required argument 'file'"],
  ['data-keys backup README.md', 'README.md: the file already exists'],
  ['data-keys restore README.md', 'The file is not a complete backup of data keys'],
  ['data-keys reseal extra', "too many arguments for 'reseal'. Expected 0"],
  ['log skip', "required option '--reason <text>' not specified"],
  ['log skip nope 0 0 --reason x', 'No such record: check the topic, partition and offset.'],
  ['log skip x y 0 --reason x', "'y' is invalid for argument 'partition'. It must be a whole"],
  ['log skip x 0 -1 --reason x', "value '-1' is invalid for argument 'offset'. It must be a whole"],
  ['log skipped extra', "too many arguments for 'skipped'. Expected 0"],
  ['log move', 'KAFKA_BROKERS is not set: use the KAFKA_* settings that the servers will have.'],
  ['export sessions', "required option '--out <file>' not specified"],
  ['export sessions --out x', '--out must end in one of .parquet, .jsonl, .csv, or --format'],
  ['export sessions --out x.csv --organization nobody', noOrganization],
  ['export events --out x.csv', "required option '--topic <name>' not specified"],
  ['events', "required option '--topic <name>' not specified"],
  ['events --topic nope', '--topic must be one of tidegate.collect.v1, tidegate.corrections.v1, '],
]

const url = 'argument is invalid. It must start with http:// or https://.'

/** Command lines with a value that may contain a secret, which the error message must not repeat. */
const secrets: [line: string, message: string][] = [
  ['webhooks listen --forward nope', `'--forward <url>' ${url}`],
  ['webhooks listen --forward nope.local:3000/hooks', `--forward <url>' ${url}`],
  ['webhooks listen --forward ftp://nope.example/', `--forward <url>' ${url}`],
  ['webhooks listen --forward http://a:nope@localhost/', 'not contain a user name or password.'],
  [
    'webhooks listen --secret nope',
    "'--secret <secret>' argument is invalid. It must be a signing",
  ],
  ['webhooks listen --secret whsec_bm9wZQnope', "'--secret <secret>' argument is invalid. It must"],
  ['webhooks listen --base-url nope', `'--base-url <url>' ${url}`],
  ['webhooks trigger --base-url http://localhost/?nope', 'must not contain a query or fragment.'],
  ['console login acme --url nope', url],
  ['signup acme --base-url nope', `'--base-url <url>' ${url}`],
  ['org suspend sk_live_nope', noOrganization],
  ['keys rotate acme sk_live_nope', noKey],
]

test('the tests below cover every command', () => {
  const program = readFileSync(path.join(root, 'services/cli/commands.ts'), 'utf8')
  const defined = [...program.matchAll(/\.(define\w+),/g)].map(([, name]) => name)
  expect(
    Object.values(definitions)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(defined.sort())
  const lines = [...values, ...otherErrors].map(([line]) => `${line} `)
  expect(commands.filter((name) => !lines.some((line) => line.startsWith(`${name} `)))).toEqual([
    'migrate',
  ])
})

test.each(commands)(
  'tidegate %s --nope: unknown option, or a required one is missing',
  async (command) => {
    const problem = /^error: (?:unknown option '--nope'|required option '--.*' not specified)/
    expect(await run(`${command} --nope`)).toEqual([1, expect.stringMatching(problem)])
  },
)

test.each(values)('tidegate %s: must be %s', async (line, expected) => {
  const [flag, value] = line.split(' ').slice(-2)
  const [code, printed] = await run(line)
  expect(code).toBe(1)
  expect(printed).toContain(`error: option '${flag} <`)
  expect(printed).toContain(`argument '${value}' is invalid. It must be ${expected}`)
})

test.each(otherErrors)('tidegate %s: %s', async (line, message) => {
  expect(await run(line)).toEqual([1, expect.stringContaining(message)])
})

test.each(secrets)('tidegate %s: %s', async (line, message) => {
  const [code, printed] = await run(line)
  expect([code, printed]).toEqual([1, expect.stringContaining(message)])
  expect(printed).not.toContain('nope')
})
