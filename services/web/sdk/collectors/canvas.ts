import type {
  CanvasChallenge,
  CanvasOp,
  OpenedSession,
} from '../../../../infra/wire/collect/client.ts'
import type { Bytes } from '../../../../infra/wire/collect/protocol.ts'
import type { Snapshot } from '../../../../schemas/observations.ts'
import type { StartOptions } from '../api.ts'
import { hashBytes, hashJson } from '../hashes.ts'
import { tryOrNull, yieldToPage } from '../support.ts'
import { signAnswers } from '../web-crypto.ts'
import { answerQuestions } from './questions.ts'

type Drawing = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D

export async function collectCanvas(): Promise<Snapshot['canvas']> {
  const geometry = pixelsOf(create2dContext(122, 110), drawGeometry)
  await yieldToPage()
  const offscreen = tryOrNull(() => isOffscreenConsistent(geometry))
  await yieldToPage()
  const text = pixelsOf(create2dContext(240, 60), drawText)
  await yieldToPage()
  const [geometryHash, textHash] = await Promise.all([
    geometry && hashBytes(geometry),
    text && hashBytes(text),
  ])
  return {
    hash: geometryHash && textHash && (await hashJson([geometryHash, textHash])),
    geometry_hash: geometryHash,
    text_hash: textHash,
    winding: tryOrNull(supportsWinding),
    noise_detected: tryOrNull(hasNoise),
    offscreen_consistent: offscreen,
  }
}

/** Creates a 2D context in memory, so that its pixels do not depend on the graphics driver. */
export function create2dContext(width: number, height: number): CanvasRenderingContext2D | null {
  return tryOrNull(() => {
    const canvas = document.createElement('canvas')
    canvas.width = width
    canvas.height = height
    return canvas.getContext('2d', { willReadFrequently: true })
  })
}

/** Draws, and returns the RGBA bytes of the canvas; null if canvas is blocked. */
export function pixelsOf(context: Drawing | null, draw: (context: Drawing) => void): Bytes | null {
  return tryOrNull(() => {
    if (!context) return null
    draw(context)
    const { width, height } = context.canvas
    return new Uint8Array(context.getImageData(0, 0, width, height).data.buffer)
  })
}

function drawGeometry(context: Drawing): void {
  context.globalCompositeOperation = 'multiply'
  for (const [color, x, y] of [
    ['#f2f', 40, 40],
    ['#2ff', 80, 40],
    ['#ff2', 60, 80],
  ] as const) {
    context.fillStyle = color
    context.beginPath()
    context.arc(x, y, 40, 0, Math.PI * 2, true)
    context.closePath()
    context.fill()
  }
  context.fillStyle = '#f9c'
  context.arc(60, 60, 60, 0, Math.PI * 2, true)
  context.arc(60, 60, 20, 0, Math.PI * 2, true)
  context.fill('evenodd')
}

function drawText(context: Drawing): void {
  context.textBaseline = 'alphabetic'
  context.fillStyle = '#f60'
  context.fillRect(100, 1, 62, 20)
  context.fillStyle = '#069'
  context.font = '11pt "Times New Roman"'
  const text = `Cwm fjordbank ${String.fromCharCode(55357, 56835)} gly`
  context.fillText(text, 2, 15)
  context.fillStyle = 'rgba(102, 204, 0, 0.2)'
  context.font = '18pt Arial'
  context.fillText(text, 4, 45)
}

function supportsWinding(): boolean {
  const context = create2dContext(1, 1)
  if (!context) throw new Error('no 2d context')
  context.rect(0, 0, 10, 10)
  context.rect(2, 2, 6, 6)
  return !context.isPointInPath(5, 5, 'evenodd')
}

// Detects added noise: a solid square must read back as drawn, and an empty canvas as transparent.
function hasNoise(): boolean {
  const filled = pixelsOf(create2dContext(16, 16), (context) => {
    context.fillStyle = 'rgb(13, 107, 201)'
    context.fillRect(0, 0, 16, 16)
  })
  const empty = pixelsOf(create2dContext(16, 16), () => {})
  if (!filled || !empty) throw new Error('no 2d context')
  const expected = [13, 107, 201, 255]
  return filled.some((value, i) => value !== expected[i % 4]) || empty.some((value) => value !== 0)
}

function isOffscreenConsistent(geometry: Bytes | null): boolean | null {
  if (!geometry || typeof OffscreenCanvas !== 'function') return null
  const context = new OffscreenCanvas(122, 110).getContext('2d', { willReadFrequently: true })
  const offscreen = pixelsOf(context, drawGeometry)
  return offscreen && geometry.every((value, i) => value === offscreen[i])
}

/** Answers the challenges in the response to `open`. A MAC binds the answers to this document. */
export async function answerChallenges(
  opened: OpenedSession,
  mode: NonNullable<StartOptions['mode']>,
): Promise<Pick<Snapshot['proofs'], 'canvas_challenge_hash' | 'engine_answers' | 'answer_mac'>> {
  await yieldToPage()
  const canvas = mode === 'full' ? await drawChallenge(opened.canvasChallenge) : null
  const engine = await answerQuestions(opened.engineQuestions)
  await yieldToPage()
  return {
    canvas_challenge_hash: canvas,
    engine_answers: engine,
    answer_mac: await signAnswers(opened, { canvas, engine }),
  }
}

async function drawChallenge({ ops, width, height }: CanvasChallenge): Promise<string | null> {
  const drawn = pixelsOf(create2dContext(width, height), (context) => {
    for (const op of ops) draw(context, op)
  })
  return drawn && hashBytes(drawn)
}

function draw(context: Drawing, op: CanvasOp): void {
  context.fillStyle = op.color
  if (op.op === 'rect') context.fillRect(op.x, op.y, op.width, op.height)
  if (op.op === 'arc') {
    context.beginPath()
    context.arc(op.x, op.y, op.radius, op.start, op.end)
    context.fill()
  }
  if (op.op === 'text') {
    context.font = `${op.size}px sans-serif`
    context.fillText(op.text, op.x, op.y)
  }
  if (op.op === 'curve') drawCurve(context, op)
}

function drawCurve(
  context: Drawing,
  { points, width, blur, color }: Extract<CanvasOp, { op: 'curve' }>,
): void {
  const [x = 0, y = 0, x1 = 0, y1 = 0, x2 = 0, y2 = 0, x3 = 0, y3 = 0] = points
  context.strokeStyle = context.shadowColor = color
  context.lineWidth = width
  context.shadowBlur = blur
  context.beginPath()
  context.moveTo(x, y)
  context.bezierCurveTo(x1, y1, x2, y2, x3, y3)
  context.stroke()
  context.shadowBlur = 0
}
