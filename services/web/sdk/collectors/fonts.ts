import type { Snapshot } from '../../../../schemas/observations.ts'
import { hashBytes, hashJson } from '../hashes.ts'
import { readOrNull, yieldToPage } from '../support.ts'
import { createDrawing, pixels } from './canvas.ts'

const generic = ['monospace', 'sans-serif', 'serif'] as const
const sample = 'mmMwWLliI0O&1'
const candidates =
  `American Typewriter, Apple SD Gothic Neo, Arial, Arial Unicode MS, Avenir Next, Bahnschrift, Calibri,
  Cambria Math, Cantarell, Chakra Petch, Comic Sans MS, Consolas, Courier New, DejaVu Sans, Droid Sans Mono,
  Fira Code, Franklin Gothic, Gadugi, Geneva, Georgia, Gill Sans, Haettenschweiler, Helvetica Neue,
  Hiragino Sans, Impact, Leelawadee UI, Levenim MT, Liberation Sans, Lucida Console, Lucida Grande, Luminari,
  MS UI Gothic, Malgun Gothic, Marlett, Menlo, Meiryo UI, Monaco, Noto Color Emoji, Noto Sans CJK JP,
  Nirmala UI, Open Sans, PT Serif, Roboto, SF Pro Text, Segoe Fluent Icons, Segoe UI, SimSun, Tahoma,
  Times New Roman, Trebuchet MS, Ubuntu, Univers CE 55 Medium, Verdana, Wingdings, ZWAdobeF`.split(
    /,\s+/,
  )

export async function collectFonts(): Promise<Snapshot['fonts'] | null> {
  const context = createDrawing(60, 40)
  if (!context) return null
  const detected = await detect(context).catch(() => null)
  await yieldToPage()
  const emoji = readOrNull(emojiHash)
  await yieldToPage()
  return {
    detected_count: detected?.length ?? null,
    tested_count: candidates.length,
    detected: detected ?? [],
    enumeration_hash: detected && hashJson(detected),
    metrics_hash: readOrNull(() => hashJson(generic.map((font) => metrics(context, font)))),
    preferences_hash: readOrNull(() => hashJson(preferences())),
    emoji_hash: emoji,
  }
}

function width(context: CanvasRenderingContext2D, font: string): number {
  context.font = `48px ${font}`
  return context.measureText(sample).width
}

async function detect(context: CanvasRenderingContext2D): Promise<string[]> {
  const plain = generic.map((font) => width(context, font))
  const found: string[] = []
  for (const name of candidates) {
    await yieldToPage()
    const isThere = generic.some(
      (fallback, i) => width(context, `"${name}", ${fallback}`) !== plain[i],
    )
    if (isThere) found.push(name)
  }
  return found
}

function metrics(context: CanvasRenderingContext2D, font: string): number[] {
  context.font = `48px ${font}`
  const box = context.measureText(sample)
  return [
    box.width,
    box.fontBoundingBoxAscent,
    box.fontBoundingBoxDescent,
    box.actualBoundingBoxAscent,
  ]
}

function preferences(): string[] {
  const probe = document.createElement('span')
  const host = document.body ?? document.documentElement
  host.append(probe)
  try {
    return ['caption', 'icon', 'menu', 'message-box', 'small-caption', 'status-bar'].map(
      (keyword) => {
        probe.style.font = keyword
        const style = getComputedStyle(probe)
        return `${style.fontFamily} ${style.fontSize} ${style.fontWeight}`
      },
    )
  } finally {
    probe.remove()
  }
}

function emojiHash(): string | null {
  const drawn = pixels(createDrawing(60, 40), (context) => {
    context.font = '24px sans-serif'
    context.fillText(String.fromCodePoint(0x1f9d1, 0x200d, 0x1f680, 0x1f60a), 2, 30)
  })
  return drawn && hashBytes(drawn)
}
