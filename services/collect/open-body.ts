import { z } from 'zod'

const maxUrlLength = 2048

/**
 * A page address as it is stored: an absolute URI without user name or password, and without query and fragment
 * where it would be longer than 2048 characters.
 */
const address = z
  .string()
  .max(16_384)
  .transform((text, context) => {
    const url = storedUrl(text)
    if (url) return url
    context.addIssue({ code: 'custom', message: 'must be an absolute URL' })
    return z.NEVER
  })

/** The stored form of a URL; undefined for what is not one. */
export function storedUrl(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url) return undefined
  url.username = ''
  url.password = ''
  if (url.href.length > maxUrlLength) {
    url.search = ''
    url.hash = ''
  }
  return url.href.length > maxUrlLength ? undefined : url.href
}

const name = z
  .string()
  .min(1)
  .max(100)
  .regex(/^\P{Cc}+$/u, 'must have no control characters')

/** The body of POST /v2/collect/sessions; unknown members are ignored. */
export const openBodySchema = z
  .object({
    clientPublicKey: z
      .string()
      .regex(/^[A-Za-z0-9_-]{43}$/, 'must be 32 bytes in base64url')
      .describe('Raw X25519 public key, base64url.'),
    resumeToken: z.string().max(1024).optional(),
    continuity: z.string().max(1024).optional(),
    sdk: z.object({ name, version: name, platform: z.enum(['web', 'ios', 'android']) }),
    page: z
      .object({
        url: address,
        referrer: z
          .string()
          .max(16_384)
          .nullish()
          .transform((text) => (text ? (storedUrl(text) ?? null) : null)),
      })
      .optional(),
  })
  .refine(({ sdk, page }) => sdk.platform !== 'web' || page !== undefined, {
    path: ['page'],
    message: 'is required when sdk.platform is web',
  })

export type OpenBody = z.infer<typeof openBodySchema>

/** Where a document without a page was opened: in an app there is no address, and none is made up. */
export const noPage = 'about:blank'
