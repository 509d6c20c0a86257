import { isIP } from 'node:net'
import { z } from 'zod'
import { costOfItems } from '../../../infra/access/charge.ts'
import { ja4Pattern } from '../../../infra/http/handshake.ts'
import { agent, verdict } from '../../../projections/sessions/decision-schemas.ts'
import { requestReasons, uncheckedNames } from './decide.ts'

export const maxScoredRequests = 50
/** Several times the size of 50 typical browser requests. */
export const scoreBodyBytes = 1024 * 1024
const maxHeaders = 100
const maxHeaderCharacters = 16 * 1024

const header = z.tuple([
  z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/, { error: 'a header name' }),
  z.string().refine((value) => !/[\0\r\n]/.test(value), { error: 'no line breaks' }),
])

const sizeOf = (headers: string[][]) => headers.flat().reduce((sum, text) => sum + text.length, 0)

const edgeRequest = z.strictObject({
  method: z.string().regex(/^[A-Za-z-]{1,32}$/, { error: 'an HTTP method' }),
  scheme: z.enum(['http', 'https']),
  authority: z
    .string()
    .max(260)
    .regex(/^[\w.:[\]-]+$/, { error: 'a host, with its port unless it is the default' })
    .refine((host) => URL.canParse(`https://${host}`), {
      error: 'a host, with its port unless it is the default',
    })
    .describe('Host, with the port unless it is the default. Must be a host of your organization.'),
  path: z
    .string()
    .max(8192)
    .regex(/^\/[\x21-\x7e]*$/, { error: 'a path and query, percent-encoded' })
    .describe('Path and query as received.'),
  headers: z
    .array(header)
    .max(maxHeaders)
    .refine((headers) => sizeOf(headers) <= maxHeaderCharacters, {
      error: `at most ${maxHeaderCharacters} characters in all names and values`,
    })
    .describe(
      `Header names and values in the order received, at most ${maxHeaderCharacters} characters in total. Leave out cookies and credentials.`,
    ),
  ip: z
    .string()
    .refine((ip) => isIP(ip) !== 0 && !ip.includes('%'), { error: 'an IPv4 or IPv6 address' })
    .meta({ anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] })
    .describe('IP address that connected to your edge.'),
  ja4: z.string().regex(ja4Pattern, { error: 'a JA4 fingerprint' }).nullable().optional(),
})

export const scoreBody = z.strictObject({
  requests: z.array(edgeRequest).min(1).max(maxScoredRequests),
})

export const scoredRequest = z
  .strictObject({
    verdict: verdict
      .extract(['bot', 'inconclusive'])
      .describe("Verdict on the request. Never `human`, because a request can't prove a person."),
    agent,
    reasons: z
      .array(z.enum(requestReasons))
      .describe('Findings about the request, including those that alone are not enough for `bot`.'),
    unchecked: z.array(z.enum(uncheckedNames)).describe('Checks that were not made.'),
  })
  .meta({ id: 'ScoredRequest' })

/** Returns the rate-limit cost of a body that is not validated yet. */
export const scoringCostOf = costOfItems('requests', maxScoredRequests)
