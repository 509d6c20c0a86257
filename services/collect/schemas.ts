import { z } from 'zod'
import { headerNames } from '../../infra/wire/collect/constants.ts'

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
])

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

/** An encrypted body; see docs/collect-protocol.md. */
export const binaryBodySchema = z.any().meta({ type: 'string', format: 'binary' })

const clientKey = z
  .string()
  .regex(/^[A-Za-z0-9_-]{43}$/)
  .describe("The document's clientPublicKey.")

export const resultHeadersSchema = z.object({ [headerNames.clientKey]: clientKey })

export const batchHeadersSchema = z.object({
  [headerNames.clientKey]: clientKey,
  [headerNames.batchSeq]: z.int().min(1).describe("The sequence number in the body's nonce."),
})
