import { timingSafeEqual } from 'node:crypto'
import { wire } from '../names.ts'
import { plainDigest, standardDigest, standardHeaders } from './signature.ts'

/** How far the clocks of sender and receiver may be apart; older ones could be replayed. */
const toleranceSeconds = 300

export type Verification = { valid: true } | { valid: false; problem: string }

type Headers = Record<string, string | string[] | undefined>

interface Received {
  body: string
  secrets: string[]
  /** Epoch ms. */
  now: number
}

/**
 * Whether a delivery was signed with one of `secrets` at most 300 seconds from `now` (epoch ms). One form of signature
 * is enough: who can make either has the secret. Header names may have any case; `body` is the text as it came.
 */
export function verifySignature(options: Received & { headers: Headers }): Verification {
  const { headers, ...received } = options
  const forms = [plainForm(headers), standardForm(headers)].filter((form) => form !== undefined)
  if (forms.length === 0) return { valid: false, problem: 'There are no signature headers.' }
  const problems = forms.map((form) => problemOf(form, received))
  if (problems.includes(undefined)) return { valid: true }
  return { valid: false, problem: problems.find((problem) => problem !== undefined) ?? '' }
}

interface Form {
  timestamp: string
  /** What the header claims. */
  digests: Buffer[]
  digestWith(secret: string, body: string): Buffer
}

function plainForm(headers: Headers): Form | undefined {
  const timestamp = headerValue(headers, wire.webhookTimestampHeader)
  const signature = headerValue(headers, wire.webhookSignatureHeader)
  if (timestamp === undefined || signature === undefined) return undefined
  return {
    timestamp,
    digests: /^[0-9a-f]{64}$/.test(signature) ? [Buffer.from(signature, 'hex')] : [],
    digestWith: (secret, body) => plainDigest({ timestamp, body, secret }),
  }
}

function standardForm(headers: Headers): Form | undefined {
  const id = headerValue(headers, standardHeaders.id)
  const timestamp = headerValue(headers, standardHeaders.timestamp)
  const signature = headerValue(headers, standardHeaders.signature)
  if (id === undefined || timestamp === undefined || signature === undefined) return undefined
  const ours = signature.split(' ').filter((entry) => entry.startsWith('v1,'))
  return {
    timestamp,
    digests: ours.map((entry) => Buffer.from(entry.slice(3), 'base64')),
    digestWith: (secret, body) => standardDigest({ id, timestamp, body, secret }),
  }
}

function problemOf(form: Form, { body, secrets, now }: Received): string | undefined {
  if (!/^\d{1,12}$/.test(form.timestamp)) return 'The timestamp is not a number of Unix seconds.'
  const matches = secrets.some((secret) => {
    const expected = form.digestWith(secret, body)
    return form.digests.some((digest) => isEqual(digest, expected))
  })
  if (!matches) return 'No signature matches: another secret, or a changed body or timestamp.'
  const age = now / 1000 - Number(form.timestamp)
  if (age > toleranceSeconds) return `The timestamp is ${Math.round(age)} seconds old.`
  if (age < -toleranceSeconds) return `The timestamp is ${Math.round(-age)} seconds in the future.`
  return undefined
}

/** Takes as long whatever differs, so that nobody finds a signature byte by byte. */
function isEqual(digest: Buffer, expected: Buffer): boolean {
  return digest.length === expected.length && timingSafeEqual(digest, expected)
}

/** The header's one value; undefined when it is absent or there are several. */
function headerValue(headers: Headers, wanted: string): string | undefined {
  const name = wanted.toLowerCase()
  const values = Object.entries(headers).flatMap(([key, value]) =>
    key.toLowerCase() === name && value !== undefined ? value : [],
  )
  return values.length === 1 ? values[0] : undefined
}
