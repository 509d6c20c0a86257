import { readFileSync } from 'node:fs'
import path from 'node:path'
import { baseStyle } from '../../../infra/http/theme.ts'
import { escapeHtml } from '../../../infra/text.ts'
import { countMoved, totalAfter, totalBefore, verdicts } from './moves.ts'
import { comparedFields, type Rehearsal } from './rehearse.ts'
import {
  numberText,
  type ReportContext,
  type Section,
  scoreSteps,
  sectionsOf,
  summaryOf,
  titleOf,
} from './report.ts'

const reportStyle = readFileSync(path.join(import.meta.dirname, 'report.css'), 'utf8')
const style = baseStyle + reportStyle

/** Returns a self-contained HTML page without scripts. Below each chart is a table with its numbers. */
export function rescorePage(rehearsal: Rehearsal, context: ReportContext): string {
  const title = escapeHtml(titleOf(context))
  const summary = summaryOf(rehearsal, context).map((text) => `<p>${escapeHtml(text)}</p>`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>
${style}</style>
</head>
<body>
<header>
<h1>${title}</h1>
${summary.join('\n')}
</header>
<main>
${sectionsOf(rehearsal)
  .map((section) => sectionHtml(section, plotOf(section.name, rehearsal)))
  .join('\n')}
</main>
<footer><p class="hint">Countries: <a href="https://db-ip.com">IP Geolocation by DB-IP</a></p></footer>
</body>
</html>
`
}

function sectionHtml({ name, title, notes, head, rows }: Section, plot: string | null): string {
  const table = rows.length > 0 ? tableHtml({ title, head, rows }) : ''
  const open = name === 'verdicts' ? ' open' : ''
  const numbers = plot ? `<details${open}><summary>Numbers</summary>${table}</details>` : table
  return `<section class="panel" aria-labelledby="${name}">
<h2 id="${name}">${escapeHtml(title)}</h2>
${notes.map((note) => `<p class="hint">${escapeHtml(note)}</p>`).join('\n')}
${plot ?? ''}
${numbers}
</section>`
}

function tableHtml({ title, head, rows }: Pick<Section, 'title' | 'head' | 'rows'>): string {
  const cells = ([first, ...others]: Section['rows'][number]) =>
    `<th scope="row">${cell(first)}</th>${others.map((value) => `<td>${cell(value)}</td>`).join('')}`
  return `<div class="scroll" role="region" aria-label="${escapeHtml(title)}" tabindex="0"><table>
<thead><tr>${head.map((name) => `<th scope="col">${escapeHtml(name)}</th>`).join('')}</tr></thead>
<tbody>
${rows.map((row) => `<tr>${cells(row)}</tr>`).join('\n')}
</tbody></table></div>`
}

const cell = (value: Section['rows'][number][number] | undefined) =>
  escapeHtml(String(value ?? '-'))

function plotOf(name: Section['name'], rehearsal: Rehearsal): string | null {
  if (name === 'verdicts')
    return legend + barsSvg('Verdicts before and after', verdictBars(rehearsal))
  if (name === 'scores') return barsSvg('Sessions by score change', scoreBars(rehearsal))
  const field = comparedFields.find((field) => field === name)
  return field
    ? legend + barsSvg('Sessions that change verdict, by new verdict', fieldBars(rehearsal, field))
    : null
}

const legend = `<p class="legend hint">${verdicts.map((verdict) => `<span class="${verdict}">${verdict}</span>`).join(' ')}</p>\n`

interface Bar {
  label: string
  /** Segments from left to right, each with its CSS class. */
  parts: { className: string; count: number }[]
}

function verdictBars({ moves }: Rehearsal): Bar[] {
  return [
    {
      label: 'before',
      parts: verdicts.map((verdict) => ({
        className: verdict,
        count: totalBefore(moves, verdict),
      })),
    },
    {
      label: 'after',
      parts: verdicts.map((verdict) => ({ className: verdict, count: totalAfter(moves, verdict) })),
    },
  ]
}

const scoreBars = (rehearsal: Rehearsal): Bar[] =>
  scoreSteps(rehearsal).map(([label, count]) => ({ label, parts: [{ className: 'plain', count }] }))

function fieldBars({ by }: Rehearsal, field: (typeof comparedFields)[number]): Bar[] {
  return by[field].top
    .filter(({ moves }) => countMoved(moves) > 0)
    .map(({ value, moves }) => ({
      label: value ?? 'unknown',
      parts: verdicts.map((verdict) => ({
        className: verdict,
        count: totalAfter(moves, verdict) - moves[verdict][verdict],
      })),
    }))
}

const rowHeight = 44
const maxLabelLength = 32

// Widths are in percent and heights in pixels, so that the chart fits any width without scaling its text.
function barsSvg(title: string, bars: Bar[]): string {
  if (bars.length === 0) return ''
  const max = Math.max(...bars.map(totalOf))
  const rows = bars.map((bar, i) => barSvg(bar, { max, top: i * rowHeight }))
  const label = escapeHtml(`${title}. The numbers are in the table.`)
  return `<svg role="img" aria-label="${label}" width="100%" height="${bars.length * rowHeight}">
${rows.join('\n')}
</svg>`
}

const totalOf = ({ parts }: Bar) => parts.reduce((sum, { count }) => sum + count, 0)

function barSvg(bar: Bar, { max, top }: { max: number; top: number }): string {
  const { label, parts } = bar
  const text = label.length > maxLabelLength ? `${label.slice(0, maxLabelLength - 1)}…` : label
  const percent = (count: number) => `${((100 * count) / max).toFixed(3)}%`
  let left = 0
  const segments = parts.map(({ className, count }) => {
    const rect = `<rect class="${className}" x="${percent(left)}" y="${top + 22}" width="${percent(count)}" height="14"/>`
    left += count
    return rect
  })
  return `<text y="${top + 15}">${escapeHtml(text)}</text><text class="count" x="100%" y="${top + 15}">${numberText(totalOf(bar))}</text>
<rect class="track" y="${top + 22}" width="100%" height="14"/>${segments.join('')}`
}
