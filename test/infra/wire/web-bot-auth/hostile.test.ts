import { describe, expect, it, test } from 'vitest'
import { checkSignature } from '../../../../infra/wire/web-bot-auth/check.ts'
import { isSignedBy } from '../../../../infra/wire/web-bot-auth/keys.ts'
import { agentSignature, createAgentKey } from '../../../support/agent-signature.ts'
import { cpuTimeOf } from '../../../support/cpu-time.ts'

const key = createAgentKey()
const now = 1_800_000_000_000
const baseUrls = Array.from({ length: 20 }, (_, i) => `https://shop${i}.example/tg`)
const rules = { baseUrls, maxLifetimeMs: 3_600_000, now }
const agent = '"https://agent.example"'
const requiredLines: [string, string][] = [
  ['"@authority"', 'shop0.example'],
  ['"signature-agent"', agent],
]

type Headers = Record<string, string>

function request(lines: [string, string][], headers: Headers) {
  const signed = agentSignature({ key, lines: [...requiredLines, ...lines], created: now / 1000 })
  const rawHeaders = Object.entries({ 'Signature-Agent': agent, ...signed, ...headers }).flat()
  return { method: 'POST', target: '/v2/collect/sessions', rawHeaders }
}

function outcomeOf(received: ReturnType<typeof request>) {
  const checked = checkSignature(received, rules)
  if (checked?.status !== 'signed')
    return checked && 'reason' in checked ? checked.reason : undefined
  const { bases, bytes } = checked.signature
  return bases.some((base) => isSignedBy(key.jwk.x, { base, bytes })) ? 'verified' : 'wrong key'
}

const fields = (count: number): [string, string][] =>
  Array.from({ length: count }, (_, i) => [`"x${i}"`, `v${i}`])
const headersOf = (lines: [string, string][]): Headers =>
  Object.fromEntries(lines.map(([name, value]) => [name.replaceAll('"', ''), value]))

describe('components', () => {
  test.each([
    [32, 'verified'],
    [33, 'component'],
  ])('a signature that covers %i: %s', (count, outcome) => {
    const lines = fields(count - requiredLines.length)
    expect(outcomeOf(request(lines, headersOf(lines)))).toBe(outcome)
  })

  test('30 members of a dictionary are verified', () => {
    const lines: [string, string][] = Array.from({ length: 30 }, (_, i) => [
      `"dict";key="k${i}"`,
      `${i};a`,
    ])
    const dict = Array.from({ length: 30 }, (_, i) => `k${i}=${i};a`).join(', ')
    expect(outcomeOf(request(lines, { Dict: dict }))).toBe('verified')
  })

  test.each<[string, [string, string][]]>([
    ['a field', Array(2).fill(['"x0"', 'v0'])],
    ['a derived component', [['"@authority"', 'shop0.example']]],
    ['a member', Array(2).fill(['"dict";key="a"', '1'])],
  ])('%s covered twice is rejected', (_, lines) => {
    expect(outcomeOf(request(lines, { X0: 'v0', Dict: 'a=1' }))).toBe('component')
  })

  test.each(['constructor', '__proto__', '@constructor', '@status'])('%s is missing', (name) => {
    expect(outcomeOf(request([[`"${name}"`, 'x']], {}))).toBe('component')
  })

  test('a member of a dictionary beyond the maximum length is rejected', () => {
    const long = `a=1, b="${'x'.repeat(4096)}"`
    expect(outcomeOf(request([['"dict";key="a"', '1']], { Dict: long }))).toBe('component')
  })
})

// The 16 KiB of headers that Node accepts, made as expensive as possible.
const dictionary = Array.from({ length: 1500 }, (_, i) => `k${i}`)
  .join(',')
  .slice(0, 11_000)
  .replace(/,[^,]*$/, '')
const short = dictionary.slice(0, 4000).replace(/,[^,]*$/, '')
const covered = (component: (i: number) => string, count: number) =>
  Array.from({ length: count }, (_, i) => component(i)).join(' ')
const inputs = (components: string, labels = 1): Headers => {
  const label = (i: number) => String.fromCharCode(97 + i)
  const list = (join: (i: number) => string) =>
    Array.from({ length: labels }, (_, i) => join(i)).join(', ')
  const parameters = `created=${now / 1000};expires=${now / 1000 + 300};keyid="k";tag="web-bot-auth"`
  return {
    'Signature-Agent': agent,
    'Signature-Input': list(
      (i) => `${label(i)}=("@authority" "signature-agent" ${components});${parameters}`,
    ),
    Signature: list((i) => `${label(i)}=:${Buffer.alloc(64).toString('base64')}:`),
  }
}

const members = (count: number) => covered((i) => `"d";key="k${i}"`, count)
const agents = Array.from({ length: 400 }, (_, i) => `a${i}="x:"`).join(',')
const hostile: [string, Headers][] = [
  ['members of a long dictionary', { ...inputs(members(210)), d: dictionary }],
  ['one member again and again', { ...inputs(covered(() => '"d";key="k9"', 230)), d: dictionary }],
  ['30 members of a dictionary', { ...inputs(members(30)), d: short }],
  ['30 members of a dictionary, by four signatures', { ...inputs(members(30), 4), d: short }],
  ['a field again and again', { ...inputs(covered(() => '"d"', 900)), d: dictionary }],
  ['the same line of a field', { ...inputs(covered(() => '"@target-uri"', 250)), d: dictionary }],
  ['an unreadable dictionary', { ...inputs(members(30)), d: `${short},(` }],
  ['many agents', { ...inputs(''), 'Signature-Agent': agents }],
]

it.each(hostile)(
  '%s: at most 50 times the CPU time of a usual request',
  async (_case, headers) => {
    const lines = fields(6)
    const usual = request(lines, headersOf(lines))
    const costly = { ...usual, rawHeaders: Object.entries(headers).flat() }
    const times = 10
    const repeat = (received: typeof usual) => () => {
      for (let i = 0; i < times; i++) checkSignature(received, rules)
    }
    const usualTime = await cpuTimeOf(repeat(usual))
    const costlyTime = await cpuTimeOf(repeat(costly))
    expect(costlyTime / usualTime).toBeLessThan(50)
  },
  60_000,
)
