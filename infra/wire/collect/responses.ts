import { z } from 'zod'

// Responses of the collect endpoints. The schemas serve the OpenAPI document and the contract tests, not validation.
// Clients import only the types, so the browser SDK does not bundle zod.

const xy = { x: z.number(), y: z.number() }
const color = z.string()
const size = { width: z.number(), height: z.number() }

const canvasOp = z.discriminatedUnion('op', [
  z.object({ op: z.literal('rect'), ...xy, ...size, color }),
  z.object({
    op: z.literal('arc'),
    ...xy,
    radius: z.number(),
    start: z.number(),
    end: z.number(),
    color,
  }),
  z.object({ op: z.literal('text'), ...xy, size: z.number(), text: z.string(), color }),
  z.object({
    op: z.literal('curve'),
    points: z.array(z.number()).length(8),
    width: z.number(),
    blur: z.number(),
    color,
  }),
])
/** A drawing step of the canvas challenge; units are canvas pixels and radians. */
export type CanvasOp = z.infer<typeof canvasOp>

const canvasChallenge = z.object({ ops: z.array(canvasOp), width: z.int(), height: z.int() })
export type CanvasChallenge = z.infer<typeof canvasChallenge>

const engineQuestion = z.object({
  /** Stable id, under which answers are learned. */
  id: z.int(),
  ask: z.enum(['call', 'make', 'read', 'css', 'style', 'lines', 'computed', 'path', 'inside']),
  /** Dotted path from the global object. */
  path: z.string().optional(),
  /** Receiver of the method call. Default: the object that contains it. */
  on: z.unknown().optional(),
  args: z.array(z.unknown()).optional(),
  // biome-ignore lint/suspicious/noThenProperty: the name of a method, in an object that nobody awaits
  then: z.string().optional(),
  with: z.array(z.unknown()).optional(),
  text: z.string().optional(),
})
/**
 * A small question about the page's browser engine. Questions are data, so new ones need no new SDK.
 *
 * - `call`, `make`, `read`: call a function; create an object and call its method `then`; read a value.
 * - `css`, `style`: check whether CSS supports `text`; set it as a declaration and read it back.
 * - `computed`: read the computed value of the property `path` of an element with that declaration.
 * - `lines`: count the lines into which a box without width breaks `text`.
 * - `path`: measure an SVG path, and the position of the point at a fraction of its length.
 * - `inside`: list the points of a grid inside the path; `args` are width, height and step.
 */
export type EngineQuestion = z.infer<typeof engineQuestion>

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
  /** Nonce of the next body, which contains the body's sequence number. */
  nonce: z.string(),
  timingNonce: z.string(),
  canvasChallenge,
  engineQuestions: z
    .array(engineQuestion)
    .describe('Questions to answer in the snapshot. Empty for apps.'),
})
export type OpenResponse = z.infer<typeof openResponseSchema>

const fingerprint = z.object({
  ready: z.boolean(),
  timestamp: z.int().describe('Time in epoch milliseconds.'),
  sessionId: z.string(),
  state: z.object({ id: z.string() }),
  integrity,
})
export type Fingerprint = z.infer<typeof fingerprint>

export const batchResponseSchema = z.object({
  ack: z.literal(true),
  nonce: z.string(),
  seq: z.int(),
  fingerprint: fingerprint
    .optional()
    .describe('Present in the response to the first batch of a document.'),
  engineQuestions: z
    .array(engineQuestion)
    .optional()
    .describe(
      'Questions to answer in the next body. Present in the response to the first batch of a document; empty for apps.',
    ),
  next: z.object({ intervalMs: z.int() }),
})
export type BatchResponse = z.infer<typeof batchResponseSchema>

export const resultResponseSchema = z.object({
  sessionId: z.string(),
  sealedToken: z.string(),
  nonce: z.string(),
  integrity,
})
export type ResultResponse = z.infer<typeof resultResponseSchema>
