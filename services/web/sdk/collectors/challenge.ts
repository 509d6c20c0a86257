import type { CanvasChallenge, CanvasOp, OpenedSession } from '../../../../infra/wire/collect/client.ts'
import type { Snapshot } from '../../../../schemas/observations.ts'
import { hashBytes } from '../support.ts'
import { createDrawing, type Drawing, pixels } from './canvas.ts'

/** Answers what the server handed out with this document, so that an old snapshot cannot be sent again. */
export function answerChallenges(opened: OpenedSession): Snapshot['proofs'] {
  const { challenge, timingNonce, canvasChallenge } = opened
  return {
    challenge,
    timing_nonce: timingNonce,
    canvas_challenge_hash: drawChallenge(canvasChallenge),
  }
}

function drawChallenge({ ops, width, height }: CanvasChallenge): string | null {
  const drawn = pixels(createDrawing(width, height), (context) => {
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
}
