import { z } from 'zod'
import { storedUrl } from './page-address.ts'

const address = z.string().transform((text, context) => {
  const url = storedUrl(text)
  if (url) return url
  context.addIssue({ code: 'custom', message: 'must be an absolute URL' })
  return z.NEVER
})

const referrer = z
  .string()
  .nullish()
  .transform((text) => (text ? (storedUrl(text) ?? null) : null))

/** Many encoders write null for a member that is absent. */
const absentOr = <T extends z.ZodType>(member: T) => member.nullish().transform((value) => value ?? undefined)

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
    resumeToken: absentOr(z.string().max(1024)),
    continuity: absentOr(z.string().max(1024)),
    sdk: z.object({ name, version: name, platform: z.enum(['web', 'ios', 'android']) }),
    page: absentOr(z.object({ url: address, referrer })),
  })
  .refine(({ sdk, page }) => sdk.platform !== 'web' || page !== undefined, {
    path: ['page'],
    message: 'is required when sdk.platform is web',
  })

export type OpenBody = z.infer<typeof openBodySchema>
