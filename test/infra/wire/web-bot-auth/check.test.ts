import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkSignature, type SignatureRules } from '../../../../infra/wire/web-bot-auth/check.ts'
import { isSignedBy } from '../../../../infra/wire/web-bot-auth/keys.ts'
import {
  agentSignature,
  createAgentKey,
  type SignedWith,
} from '../../../support/agent-signature.ts'

const key = createAgentKey()
const now = 1_800_000_000_000
const created = now / 1000
const rules: SignatureRules = { baseUrls: ['https://own.example'], maxLifetimeMs: 3_600_000, now }
const target = '/v2/collect/sessions?a=1'
const bare = '"https://agent.example"'
const dictionary = 'sig1="https://agent.example"'

type Lines = SignedWith['lines']
const lines: Lines = [
  ['"@authority"', 'own.example'],
  ['"signature-agent"', bare],
]

interface Sent extends Partial<SignedWith> {
  agent?: string | undefined
  headers?: Record<string, string>
}

function requestWith({ agent = bare, headers = {}, ...signed }: Sent = {}) {
  const own = agentSignature({ key, lines, created, ...signed })
  const all = { 'Signature-Agent': agent, ...own, ...headers }
  return { method: 'POST', target, rawHeaders: Object.entries(all).flat() }
}

function verdictOf(request: ReturnType<typeof requestWith>, others: Partial<SignatureRules> = {}) {
  const checked = checkSignature(request, { ...rules, ...others })
  if (checked?.status !== 'signed') return checked
  const { bases, bytes } = checked.signature
  return bases.some((base) => isSignedBy(key.jwk.x, { base, bytes })) ? 'verified' : 'wrong key'
}

const agentLine = (value: string, parameters = ''): Lines => [
  ['"@authority"', 'own.example'],
  [`"signature-agent"${parameters}`, value],
]

/** A signature that covers an additional component, with the headers of that component. */
const covering = (component: string, value: string, headers: Sent['headers'] = {}): Sent => ({
  lines: [...lines, [component, value]],
  headers,
})

describe('verifies a signature', () => {
  it.each<[string, Sent]>([
    ['with the older form of Signature-Agent', {}],
    ['with the dictionary', { agent: dictionary, lines: agentLine(dictionary) }],
    [
      'with a member of the dictionary',
      {
        agent: `other="https://other.example", ${dictionary}`,
        lines: agentLine(bare, ';key="sig1"'),
      },
    ],
    [
      'with another label than the only agent of the dictionary',
      { agent: dictionary, lines: agentLine(dictionary), label: 'mine' },
    ],
    ['with the whole address', covering('"@target-uri"', `https://own.example${target}`)],
    ['with the method', covering('"@method"', 'POST')],
    ['with the path', covering('"@path"', '/v2/collect/sessions')],
    ['with the query', covering('"@query"', '?a=1')],
    ['with the scheme', covering('"@scheme"', 'https')],
    ['with the request target', covering('"@request-target"', target)],
    ['with a repeated header', covering('"x-more"', 'a, b', { 'X-More': ' a ', 'x-more': 'b' })],
    ['with an explicit algorithm', { more: ';alg="ed25519"' }],
    ['that is valid for an hour', { expires: created + 3600 }],
    ['from a clock that is less than a minute ahead', { created: created + 59 }],
  ])('%s', (_, sent) => {
    expect(verdictOf(requestWith(sent))).toBe('verified')
  })

  it('for any address of this installation, with its path', () => {
    const baseUrls = ['http://127.0.0.1:8787', 'https://shop.example/tg']
    const sent = (authority: string, path: string): Sent => ({
      lines: [['"@authority"', authority], ['"@path"', path], ...lines.slice(1)],
    })
    const path = '/v2/collect/sessions'
    expect(verdictOf(requestWith(sent('127.0.0.1:8787', path)), { baseUrls })).toBe('verified')
    expect(verdictOf(requestWith(sent('shop.example', `/tg${path}`)), { baseUrls })).toBe(
      'verified',
    )
    expect(verdictOf(requestWith(sent('shop.example', path)), { baseUrls })).toBe('wrong key')
  })

  it('if other signatures of the request are not valid', () => {
    const ours = agentSignature({ key, lines, created })
    const other = agentSignature({ key, lines, created, tag: 'other', label: 'proxy' })
    const rsa = agentSignature({ key, lines, created, more: ';alg="rsa-pss-sha512"', label: 'rsa' })
    const joined = (name: string) =>
      [other, rsa, ours].map((signature) => signature[name]).join(', ')
    const headers = { 'Signature-Input': joined('Signature-Input'), Signature: joined('Signature') }
    expect(verdictOf(requestWith({ headers }))).toBe('verified')
  })
})

it('returns the directory of the agent', () => {
  const agent = 'a="https://Agent.example:8443/any/path?q"'
  expect(checkSignature(requestWith({ agent }), rules)).toMatchObject({
    signature: {
      agent: 'agent.example:8443',
      directory: 'https://agent.example:8443/.well-known/http-message-signatures-directory',
      keyId: key.keyId,
      createdAt: now,
    },
  })
})

it('rejects a signature for another site, whatever Host says', () => {
  const foreign: Lines = [['"@authority"', 'other.example'], ...lines.slice(1)]
  const other = 'other.example'
  const headers = { Host: other, 'X-Forwarded-Host': other, Forwarded: `host=${other}` }
  expect(verdictOf(requestWith({ lines: foreign, headers }))).toBe('wrong key')
})

it.each<[string, Sent]>([
  ['a different method', covering('"@method"', 'GET')],
  ['a different path', covering('"@path"', '/v1')],
  ['a different header', covering('"x-more"', 'a', { 'X-More': 'b' })],
  ['a different agent', { agent: '"https://agent.example.test"' }],
])('rejects %s than was signed', (_, sent) => {
  expect(verdictOf(requestWith(sent))).toBe('wrong key')
})

it.each<[string, Sent]>([
  ['tag', { tag: 'http-message-signatures-directory' }],
  ['coverage', { lines: [['"@method"', 'POST'], ...lines.slice(1)] }],
  ['coverage', { lines: [['"@authority"', 'own.example']] }],
  ['coverage', { lines: [['"@authority";req', 'own.example'], ...lines.slice(1)] }],
  ['coverage', { lines: agentLine(bare, ';key="sig1"') }],
  ['agent', { agent: '"http://agent.example"' }],
  ['agent', { agent: 'other="https://a.example"', lines: agentLine(bare, ';key="sig1"') }],
  ['agent', { agent: `"https://${'a'.repeat(254)}.example"` }],
  ['component', covering('"x-missing"', '')],
  ['component', covering('"@status"', '200')],
  ['component', covering('"X-Upper"', 'a', { 'X-Upper': 'a' })],
  ['component', covering('"@authority"', 'own.example')],
  ['component', covering('"x-long"', 'a', { 'X-Long': 'a'.repeat(9000) })],
  [
    'parameters',
    { headers: { 'Signature-Input': 'sig1=("@authority" "signature-agent");tag="web-bot-auth"' } },
  ],
  ['lifetime', { expires: created + 3601 }],
  ['lifetime', { expires: created }],
  ['not_yet_valid', { created: created + 61 }],
  ['expired', { created: created - 400, expires: created - 61 }],
  ['malformed', { headers: { Signature: 'sig1=:A' } }],
  ['malformed', { agent: '"https://agent.example' }],
  ['agent', { agent: 'https://agent.example' }],
  ['malformed', { headers: { 'Signature-Input': `sig1=(${'"a" '.repeat(2000)})` } }],
])('rejects a signature: %s', (reason, sent) => {
  expect(verdictOf(requestWith(sent))).toEqual({ status: 'invalid', reason })
})

it.each<[string, Sent]>([
  ['one parameter of the query', covering('"@query-param";name="a"', '1')],
  ['the strict form of a field', covering('"x-more";sf', 'a', { 'X-More': 'a' })],
  ['the bytes of a field', covering('"x-more";bs', ':YQ==:', { 'X-More': 'a' })],
  ['a trailer', covering('"x-more";tr', 'a')],
])('does not support %s', (_, sent) => {
  expect(verdictOf(requestWith(sent))).toEqual({ status: 'unknown_key', reason: 'component' })
})

it('does not support cards instead of directories', () => {
  const agent = `${dictionary};type=cimd`
  const expected = { status: 'unknown_key', reason: 'directory_type' }
  expect(verdictOf(requestWith({ agent, lines: agentLine(agent) }))).toEqual(expected)
})

it.each(['Signature', 'Signature-Input', 'Signature-Agent'])(
  'returns absent without %s',
  (name) => {
    const { rawHeaders, ...request } = requestWith()
    const at = rawHeaders.indexOf(name)
    const others = rawHeaders.filter((_, index) => index !== at && index !== at + 1)
    expect(checkSignature({ ...request, rawHeaders: others }, rules)).toEqual({ status: 'absent' })
  },
)

it('returns undefined without any of the headers', () => {
  expect(
    checkSignature({ method: 'POST', target, rawHeaders: ['Host', 'own.example'] }, rules),
  ).toBe(undefined)
})

it('nonceHash depends on the nonce, or on the signature without one', () => {
  const hashOf = (sent: Sent) => {
    const checked = checkSignature(requestWith(sent), rules)
    return checked?.status === 'signed' ? checked.signature.nonceHash : undefined
  }
  expect(hashOf({ nonce: 'a' })).toBe(hashOf({ nonce: 'a', created: created + 1 }))
  expect(hashOf({ nonce: 'a' })).not.toBe(hashOf({ nonce: 'b' }))
  expect(hashOf({})).toBe(hashOf({}))
  expect(hashOf({})).not.toBe(hashOf({ created: created + 1 }))
})

it('never throws', () => {
  const seed = Math.trunc(Math.random() * 2 ** 31)
  const good = agentSignature({ key, lines, created })
  const marks = ['sig1=', '(', ')', ':', ';', '"', 'key=', '@', '?1', '1.5', '@99', '%"a"']
  const piece = fc.oneof(
    fc.string({ unit: 'binary-ascii', maxLength: 30 }),
    fc.constantFrom(...marks, ...Object.values(good)),
  )
  const value = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))
  const name = fc.constantFrom('Signature', 'Signature-Input', 'Signature-Agent', 'X-More')
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { maxLength: 6 }), (headers) => {
      const request = { method: 'POST', target, rawHeaders: headers.flat() }
      expect(['signed', 'invalid', 'unknown_key', 'absent', undefined]).toContain(
        checkSignature(request, rules)?.status,
      )
    }),
    { seed, numRuns: 500 },
  )
})
