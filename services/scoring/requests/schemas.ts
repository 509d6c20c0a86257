import { isIP } from 'node:net'
import { z } from 'zod'
import { costOfItems } from '../../../infra/access/charge.ts'
import { ja4Pattern } from '../../../infra/http/handshake.ts'
import { agent, verdict } from '../../../projections/sessions/decision-schemas.ts'
import { requestReasons, uncheckedNames } from './decide.ts'

export const mostScored = 50
/** Fifty requests with headers of the size that browsers send fit several times. */
export const scoreBodyBytes = 1024 * 1024
const maxHeaders = 100
const maxHeaderCharacters = 16 * 1024

const header = z.tuple([
  z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/, { error: 'a name of a header' }),
  z.string().refine((value) => !/[\0\r\n]/.test(value), { error: 'no ends of lines' }),
])

const sizeOf = (headers: string[][]) => headers.flat().reduce((sum, text) => sum + text.length, 0)

const edgeRequest = z.strictObject({
  method: z.string().regex(/^[A-Za-z-]{1,32}$/, { error: 'a method of HTTP' }),
  scheme: z.enum(['http', 'https']),
  authority: z
    .string()
    .max(260)
    .regex(/^[\w.:[\]-]+$/, { error: 'a host, with its port where that is not the usual one' })
    .refine((host) => URL.canParse(`https://${host}`), {
      error: 'a host, with its port where that is not the usual one',
    })
    .describe(
      'Host, with its port where that is not the usual one. One of the hosts of your organization.',
    ),
  path: z
    .string()
    .max(8192)
    .regex(/^\/[\x21-\x7e]*$/, { error: 'a path and query, percent-encoded' })
    .describe('Path and query as they came.'),
  headers: z
    .array(header)
    .max(maxHeaders)
    .refine((headers) => sizeOf(headers) <= maxHeaderCharacters, {
      error: `at most ${maxHeaderCharacters} characters in all names and values`,
    })
    .describe(
      `Names and values in the order in which they came, at most ${maxHeaderCharacters} characters together. Leave cookies and credentials out.`,
    ),
  ip: z
    .string()
    .refine((ip) => isIP(ip) !== 0 && !ip.includes('%'), { error: 'an IPv4 or IPv6 address' })
    .meta({ anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] })
    .describe('Whose connection the edge saw.'),
  ja4: z.string().regex(ja4Pattern, { error: 'a JA4' }).nullable().optional(),
})

export const scoreBody = z.strictObject({ requests: z.array(edgeRequest).min(1).max(mostScored) })

export const scoredRequest = z
  .strictObject({
    verdict: verdict
      .extract(['bot', 'inconclusive'])
      .describe('Never `human`: a request shows no person.'),
    agent,
    reasons: z
      .array(z.enum(requestReasons))
      .describe('What the request shows, also where that is not enough for a verdict.'),
    unchecked: z
      .array(z.enum(uncheckedNames))
      .describe('What might have said more, and was not looked at.'),
  })
  .meta({ id: 'ScoredRequest' })

/** The cost is read before the body is validated. */
export const scoringCostOf = costOfItems('requests', mostScored)
