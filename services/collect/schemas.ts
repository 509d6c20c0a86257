import { z } from 'zod'
import { implies, pathId } from '../../infra/http/schemas.ts'
import { headerNames } from '../../infra/wire/collect/protocol.ts'

// For the interface description and the contract tests: nothing is validated by these.
const canvasOp = z.discriminatedUnion('op', [
  z.object({
    op: z.literal('rect'),
    x: z.number(),
    y: z.number(),
    width: z.number(),
    height: z.number(),
    color: z.string(),
  }),
  z.object({
    op: z.literal('arc'),
    x: z.number(),
    y: z.number(),
    radius: z.number(),
    start: z.number(),
    end: z.number(),
    color: z.string(),
  }),
  z.object({
    op: z.literal('text'),
    x: z.number(),
    y: z.number(),
    size: z.number(),
    text: z.string(),
    color: z.string(),
  }),
  z.object({
    op: z.literal('curve'),
    points: z.array(z.number()).length(8),
    width: z.number(),
    blur: z.number(),
    color: z.string(),
  }),
])

const engineQuestion = z.object({
  id: z.int(),
  ask: z.enum(['call', 'make', 'read', 'css', 'style', 'lines', 'computed', 'path', 'inside']),
  path: z.string().optional(),
  on: z.unknown().optional(),
  args: z.array(z.unknown()).optional(),
  // biome-ignore lint/suspicious/noThenProperty: the name of a method, in an object that nobody awaits
  then: z.string().optional(),
  with: z.array(z.unknown()).optional(),
  text: z.string().optional(),
})

const integrity = z.object({ responseHmac: z.string() })

export const openResponseSchema = z.object({
  sessionId: z.string(),
  documentId: z.string(),
  resumeToken: z.string(),
  continuityScope: z.string(),
  sharedPostVersion: z.int(),
  resumed: z.boolean(),
  challenge: z.string(),
  serverPublicKey: z.string(),
  nonce: z.string(),
  timingNonce: z.string(),
  canvasChallenge: z.object({ ops: z.array(canvasOp), width: z.int(), height: z.int() }),
  engineQuestions: z.array(engineQuestion).describe('Empty for apps.'),
})

export const batchResponseSchema = z.object({
  ack: z.literal(true),
  nonce: z.string(),
  seq: z.int(),
  fingerprint: z
    .object({
      ready: z.boolean(),
      timestamp: z.int().describe('Epoch milliseconds.'),
      sessionId: z.string(),
      state: z.object({ id: z.string() }),
      integrity,
    })
    .optional()
    .describe('With the first batch of a document.'),
  next: z.object({ intervalMs: z.int() }),
})

export const resultResponseSchema = z.object({
  sessionId: z.string(),
  sealedToken: z.string(),
  nonce: z.string(),
  integrity,
})

export const binaryBodySchema = z.any().meta({ type: 'string', format: 'binary' })

const clientKey = z
  .string()
  .regex(/^[A-Za-z0-9_-]{43}$/)
  .describe("The document's clientPublicKey.")

export const bodyParamsSchema = z.object({
  sessionId: pathId('sid'),
  documentId: z.string().meta({ pattern: '^[A-Za-z0-9_-]+$' }),
})

export const resultHeadersSchema = z.object({ [headerNames.clientKey]: clientKey })

export const batchHeadersSchema = z.object({
  [headerNames.clientKey]: clientKey,
  [headerNames.batchSeq]: z.int().min(1).describe("The sequence number in the body's nonce."),
})

const address = z
  .string()
  .transform((text, context) => {
    const url = storedUrl(text)
    if (url) return url
    context.addIssue({ code: 'custom', message: 'must be an absolute URL' })
    return z.NEVER
  })
  .meta({ format: 'uri' })

const referrer = z
  .string()
  .nullish()
  .transform((text) => (text ? (storedUrl(text) ?? null) : null))

// Many encoders write null for a member that is absent.
const absentOr = <T extends z.ZodType>(member: T) => member.nullish().transform((value) => value ?? undefined)

const name = z
  .string()
  .min(1)
  .max(100)
  .regex(/^\P{Cc}*$/u, 'must have no control characters')
  // Not every language's expressions know \p.
  .meta({ pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$' })

const onWeb = {
  required: ['sdk'],
  properties: { sdk: { required: ['platform'], properties: { platform: { const: 'web' } } } },
}

export const openBodySchema = z
  .object({
    clientPublicKey: z
      .string()
      .regex(/^[A-Za-z0-9_-]{43}$/, 'must be 32 bytes in base64url')
      .describe('Raw X25519 public key, base64url.'),
    resumeToken: absentOr(z.string().max(1024)),
    continuity: absentOr(z.string().max(1024)),
    sdk: z.object({ name, version: name, platform: z.enum(['web', 'ios', 'android']) }),
    page: absentOr(z.object({ url: address, referrer })),
  })
  .refine(({ sdk, page }) => sdk.platform !== 'web' || page !== undefined, {
    path: ['page'],
    message: 'is required when sdk.platform is web',
    // Others may be refused; these two must be there to look at.
    when: ({ issues }) =>
      issues.every(({ path: [member] = [] }) => member && !/^(sdk|page)$/.test(String(member))),
  })
  .meta(implies(onWeb, { required: ['page'], properties: { page: { type: 'object' } } }))

export type OpenBody = z.infer<typeof openBodySchema>

export const noPage = 'about:blank'

const maxLength = 2048

/**
 * A page's address as it is stored: an absolute URI of at most 2048 characters without user name or password.
 * What is longer loses its query and fragment, and then its path. Of addresses without a host (data:, file:,
 * blob:, ...) nothing but the scheme is kept, because the rest is content, a path on somebody's disk or a random
 * name; a blob: keeps the origin that made it. Undefined for a text that is no URL.
 */
export function storedUrl(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url) return undefined
  if (url.protocol === 'about:') return noPage
  const stored = url.host === '' || url.protocol === 'file:' ? withoutPath(url) : shortened(url)
  return stored.length <= maxLength ? stored : noPage
}

function shortened(url: URL): string {
  url.username = ''
  url.password = ''
  if (url.href.length > maxLength) {
    url.search = ''
    url.hash = ''
  }
  return url.href.length > maxLength ? withoutPath(url) : url.href
}

function withoutPath({ protocol, host, origin }: URL): string {
  if (protocol === 'blob:' && origin !== 'null') return `blob:${origin}/`
  return protocol === 'file:' ? 'file:///' : `${protocol}//${host}/`
}
