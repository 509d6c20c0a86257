import { readFile, writeFile } from 'node:fs/promises'
import type pg from 'pg'
import type { Environment } from '../../../schemas/events.ts'
import { modelId, type ScoringModel, standardModel } from '../../scoring/model/model.ts'
import { parseModel } from '../../scoring/model/own-model.ts'
import { since as sinceOf } from '../arguments.ts'
import { withStores } from '../operator/core.ts'
import { type CommandOutcome, type OperatorOptions, requireOrganization } from '../operator/operate.ts'
import { progress } from '../progress.ts'
import { type Rehearsal, startRehearsal } from './rehearse.ts'
import { numberText, rescoreText } from './report.ts'
import { rescorePage } from './report-html.ts'
import { factRows, type RehearsedSessions } from './rows.ts'

export interface RescoreFlags extends OperatorOptions {
  model?: string
  printModel?: true
  since?: number
  until?: number
  organization?: string
  environment?: Environment
  html?: string
}

export function runRescore(flags: RescoreFlags): Promise<CommandOutcome> {
  const { model: file, printModel } = flags
  if (printModel || file === undefined) return printedModel()
  return withStores(async ({ pool }) => rehearse(pool, parseModel(await readFile(file, 'utf8')), flags))
}

async function printedModel(): Promise<CommandOutcome> {
  return { data: standardModel, text: modelText(standardModel) }
}

// One line for each signal.
const modelText = (model: ScoringModel) =>
  JSON.stringify(model, null, 2).replace(/\{\s+"role"[^}]+\}/g, (signal) => signal.replace(/\s+/g, ' '))

async function rehearse(pool: pg.Pool, tried: ScoringModel, flags: RescoreFlags): Promise<CommandOutcome> {
  const { since = sinceOf('7d'), until = Date.now(), environment, html } = flags
  const organization = flags.organization && (await requireOrganization(pool, flags.organization))
  const organizationId = organization ? organization.id : undefined
  const rehearsal = await rescored(pool, tried, { since, until, organizationId, environment })
  const scope = [organization ? organization.slug : 'all organizations', environment]
    .filter(Boolean)
    .join(', ')
  const about = { model: modelId(tried), since, until, scope }
  if (html) await writeFile(html, rescorePage(rehearsal, about))
  const times = { since: new Date(since).toISOString(), until: new Date(until).toISOString() }
  return { data: { ...about, ...times, ...rehearsal }, text: rescoreText(rehearsal, about) }
}

async function rescored(pool: pg.Pool, tried: ScoringModel, those: RehearsedSessions): Promise<Rehearsal> {
  const models = new Map([[modelId(standardModel), standardModel]])
  const rehearsal = startRehearsal({ tried, modelOf: (id) => models.get(id) })
  const onProgress = progress()
  let rows = 0
  for await (const batch of factRows(pool, those)) {
    for (const row of batch) rehearsal.add(row)
    rows += batch.length
    onProgress(`${numberText(rows)} sessions`)
  }
  return rehearsal.result()
}
