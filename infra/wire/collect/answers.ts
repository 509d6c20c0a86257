import { z } from 'zod'

// What the server answers to collect requests. The interface description and the contract tests use the schemas, and
// nothing is validated by them. Clients import the types only, so the browser SDK has no zod in it.

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
/** One drawing step of the canvas challenge; units are canvas pixels and radians. */
export type CanvasOp = z.infer<typeof canvasOp>

const canvasChallenge = z.object({ ops: z.array(canvasOp), width: z.int(), height: z.int() })
export type CanvasChallenge = z.infer<typeof canvasChallenge>

const engineQuestion = z.object({
  /** Never changes its meaning: answers are learned by it. */
  id: z.int(),
  ask: z.enum(['call', 'make', 'read', 'css', 'style', 'lines', 'computed', 'path', 'inside']),
  /** From the global object, by dots. */
  path: z.string().optional(),
  /** The receiver of a method, in place of the object that the path names. */
  on: z.unknown().optional(),
  args: z.array(z.unknown()).optional(),
  // biome-ignore lint/suspicious/noThenProperty: the name of a method, in an object that nobody awaits
  then: z.string().optional(),
  with: z.array(z.unknown()).optional(),
  text: z.string().optional(),
})
/**
 * A small question about the engine that a page runs in. All is data, so that questions are added without a new SDK.
 *
 * - `call`, `make`, `read`: call a function, make an object and call its method `then`, read a value.
 * - `css`, `style`: whether CSS supports `text`, and how it reads back as a declaration.
 * - `computed`: what the property `path` of an element with that declaration comes to.
 * - `lines`: into how many lines a box without width breaks `text`.
 * - `path`: how long an SVG path is, and where its point at a share of that lies.
 * - `inside`: which points of a grid are inside of the path, with width, height and step as `args`.
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
  /** Goes into the next body; names its sequence number. */
  nonce: z.string(),
  timingNonce: z.string(),
  canvasChallenge,
  engineQuestions: z.array(engineQuestion).describe('Answered in the snapshot. Empty for apps.'),
})
export type OpenResponse = z.infer<typeof openResponseSchema>

const fingerprint = z.object({
  ready: z.boolean(),
  timestamp: z.int().describe('Epoch milliseconds.'),
  sessionId: z.string(),
  state: z.object({ id: z.string() }),
  integrity,
})
export type Fingerprint = z.infer<typeof fingerprint>

export const batchResponseSchema = z.object({
  ack: z.literal(true),
  nonce: z.string(),
  seq: z.int(),
  fingerprint: fingerprint.optional().describe('With the first batch of a document.'),
  engineQuestions: z
    .array(engineQuestion)
    .optional()
    .describe(
      'With the first batch of a document, to be answered in its next body. Empty for apps.',
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
