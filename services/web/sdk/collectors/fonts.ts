import type { Bytes } from '../../../../infra/wire/collect/protocol.ts'
import type { Snapshot } from '../../../../schemas/observations.ts'
import { hashBytes, hashJson, hashOrNull } from '../hashes.ts'
import { yieldToPage } from '../support.ts'
import { create2dContext, pixelsOf } from './canvas.ts'

const generic = ['monospace', 'sans-serif', 'serif'] as const
// Tests several fonts at once, because most fonts are missing on most machines.
const groupSize = 8
const sampleText = 'mmMwWLliI0O&1'
export const candidateFonts =
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
  const context = create2dContext(60, 40)
  if (!context) return null
  const detected = await detect(context).catch(() => null)
  await yieldToPage()
  const emoji = emojiPixels()
  await yieldToPage()
  const [enumerationHash, metricsHash, preferencesHash, emojiHash] = await Promise.all([
    detected && hashJson(detected),
    hashOrNull(() => generic.map((font) => metrics(context, font))),
    hashOrNull(preferences),
    emoji && hashBytes(emoji),
  ])
  return {
    detected_count: detected?.length ?? null,
    tested_count: candidateFonts.length,
    detected: detected ?? [],
    enumeration_hash: enumerationHash,
    metrics_hash: metricsHash,
    preferences_hash: preferencesHash,
    emoji_hash: emojiHash,
  }
}

function textWidth(context: CanvasRenderingContext2D, font: string): number {
  context.font = `48px ${font}`
  return context.measureText(sampleText).width
}

async function detect(context: CanvasRenderingContext2D): Promise<string[]> {
  const fallbacks = generic.map((fallback) => ({ fallback, width: textWidth(context, fallback) }))
  // Two fallbacks of different widths are enough: a font cannot have the width of both.
  const pair = fallbacks
    .filter(({ width }, i) => i === 0 || width !== fallbacks[0]?.width)
    .slice(0, 2)
  const isAnyInstalled = (names: string[]) =>
    pair.some(({ fallback, width }) => {
      const list = names.map((name) => `"${name}", `).join('')
      return textWidth(context, `${list}${fallback}`) !== width
    })
  const installed: string[] = []
  for (let at = 0; at < candidateFonts.length; at += groupSize) {
    await yieldToPage()
    const names = candidateFonts.slice(at, at + groupSize)
    if (!isAnyInstalled(names)) continue
    for (const name of names) {
      await yieldToPage()
      if (isAnyInstalled([name])) installed.push(name)
    }
  }
  return installed
}

function metrics(context: CanvasRenderingContext2D, font: string): number[] {
  context.font = `48px ${font}`
  const box = context.measureText(sampleText)
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

function emojiPixels(): Bytes | null {
  return pixelsOf(create2dContext(60, 40), (context) => {
    context.font = '24px sans-serif'
    context.fillText(String.fromCodePoint(0x1f9d1, 0x200d, 0x1f680, 0x1f60a), 2, 30)
  })
}
