import { writeFile } from 'node:fs/promises'
import { iso } from '../../../projections/sessions/decision-shape.ts'
import type { CommandOutcome } from '../operator/operate.ts'
import type { Rehearsal } from './rehearse.ts'
import { type About, rescoreText } from './report.ts'
import { rescorePage } from './report-html.ts'

interface Reported {
  about: About
  /** What was tried, as JSON names it. */
  named: { model: string } | { release: string }
  /** A file for the report as a page. */
  html: string | undefined
}

/** What a rehearsal prints; it is written as a page, too, where that was asked for. */
export async function rehearsalOutcome(
  rehearsal: Rehearsal,
  { about, named, html }: Reported,
): Promise<CommandOutcome> {
  const { scope, since, until } = about
  if (html) await writeFile(html, rescorePage(rehearsal, about))
  const data = { ...named, scope, since: iso(since), until: iso(until), ...rehearsal }
  return { data, text: rescoreText(rehearsal, about) }
}
