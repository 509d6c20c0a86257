import { z } from 'zod'
import { implies, pathId } from '../../infra/http/schemas.ts'
import { headerNames } from '../../infra/wire/collect/protocol.ts'

export const binaryBodySchema = z.any().meta({ type: 'string', format: 'binary' })

const clientKey = z
  .string()
  .regex(/^[A-Za-z0-9_-]{43}$/)
  .describe('`clientPublicKey` of the document.')

export const bodyPathParams = z.object({
  sessionId: pathId('sid'),
  documentId: z.string().meta({ pattern: '^[A-Za-z0-9_-]+$' }),
})

export const resultHeadersSchema = z.object({ [headerNames.clientKey]: clientKey })

export const batchHeadersSchema = z.object({
  [headerNames.clientKey]: clientKey,
  [headerNames.batchSeq]: z.int().min(1).describe('Sequence number, as in the nonce of the body.'),
})

const pageUrl = z
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

// Many JSON encoders write null for an absent member.
const optionalOrNull = <T extends z.ZodType>(member: T) =>
  member.nullish().transform((value) => value ?? undefined)

const name = z
  .string()
  .min(1)
  .max(100)
  .regex(/^\P{Cc}*$/u, 'must have no control characters')
  // OpenAPI tools of some languages do not support \p.
  .meta({ pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$' })

const webPlatform = {
  required: ['sdk'],
  properties: { sdk: { required: ['platform'], properties: { platform: { const: 'web' } } } },
}

export const openBodySchema = z
  .object({
    clientPublicKey: z
      .string()
      .regex(/^[A-Za-z0-9_-]{43}$/, 'must be 32 bytes in base64url')
      .describe('Raw X25519 public key, base64url.'),
    resumeToken: optionalOrNull(z.string().max(1024)),
    continuity: optionalOrNull(z.string().max(1024)),
    sdk: z.object({ name, version: name, platform: z.enum(['web', 'ios', 'android']) }),
    page: optionalOrNull(z.object({ url: pageUrl, referrer })),
  })
  .refine(({ sdk, page }) => sdk.platform !== 'web' || page !== undefined, {
    path: ['page'],
    message: 'is required when sdk.platform is web',
    // Runs if these two members are valid, even when others are not.
    when: ({ issues }) =>
      issues.every(({ path: [member] = [] }) => member && !/^(sdk|page)$/.test(String(member))),
  })
  .meta(implies(webPlatform, { required: ['page'], properties: { page: { type: 'object' } } }))

export type OpenBody = z.infer<typeof openBodySchema>

/** Stored URL if there is no page, as in an app. */
export const noPage = 'about:blank'

const maxLength = 2048
// Longer URLs take tens of milliseconds to parse, and the rest is not stored anyway.
const maxParsedLength = 16 * 1024

/**
 * Returns a page's URL as it is stored: an absolute URL of at most 2,048 characters without user name or password. A
 * longer URL loses its query and fragment, and then its path. For URLs without a host (data:, file:, blob:
 * and others) only the scheme is stored, because the rest is content, a local path or a random name; blob: URLs also
 * keep the origin. Returns undefined for an invalid URL.
 */
export function storedUrl(text: string): string | undefined {
  const url = URL.parse(text.slice(0, maxParsedLength))
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
