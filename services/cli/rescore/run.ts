import { readFile, writeFile } from 'node:fs/promises'
import type pg from 'pg'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { listModelChanges, listNewModelChanges } from '../../../projections/policies/queries.ts'
import { iso } from '../../../projections/sessions/decision-shape.ts'
import type { Environment } from '../../../schemas/events.ts'
import { switchModel, switchModelBack } from '../../scoring/model/commands.ts'
import { inEffect, modelInForce } from '../../scoring/model/in-force.ts'
import { modelId, type ScoringModel, standardModel } from '../../scoring/model/model.ts'
import { parseModel, storedModel } from '../../scoring/model/own-model.ts'
import type { Core } from '../../server/dependencies.ts'
import { since as sinceOf } from '../arguments.ts'
import { withStores } from '../operator/core.ts'
import {
  asOperator,
  type CommandOutcome,
  type OperatorOptions,
  requireOrganization,
  withCore,
} from '../operator/operate.ts'
import { timeText } from '../tables.ts'
import { typed } from '../typed.ts'
import { rescoreText } from './report.ts'
import { rescorePage } from './report-html.ts'
import { rehearseRows } from './rows.ts'

export interface RescoreFlags extends OperatorOptions {
  model?: string
  printModel?: true
  since?: number
  until?: number
  organization?: string
  environment?: Environment
  html?: string
  everybody?: true
  switch?: true
  back?: true
  at?: number
  reason?: string
}

export async function runRescore(flags: RescoreFlags): Promise<CommandOutcome> {
  const tried =
    flags.model === undefined ? undefined : parseModel(await readFile(flags.model, 'utf8'))
  if (flags.back) return withCore((core) => changeModel(core, flags))
  if (!tried || flags.printModel) return withStores(({ pool }) => printedModel(pool, flags))
  if (!flags.switch) return withStores(({ pool }) => rehearse(pool, tried, flags))
  return withCore(async (core) => {
    const rehearsed = await rehearse(core.pool, tried, flags)
    if (!flags.json) console.log(rehearsed.text)
    const changed = await changeModel(core, flags, tried)
    return { data: { ...rehearsed.data, ...changed.data }, text: `\n${changed.text}` }
  })
}

const organizationOf = async (
  pool: pg.Pool,
  { organization }: RescoreFlags,
): Promise<OrganizationRow | undefined> =>
  organization ? requireOrganization(pool, organization) : undefined

async function printedModel(pool: pg.Pool, flags: RescoreFlags): Promise<CommandOutcome> {
  const organization = await organizationOf(pool, flags)
  const changes = await listModelChanges(pool, organization?.id ?? null)
  const { document } = modelInForce(changes, Date.now()).change ?? { document: null }
  const data = document === null ? standardModel : storedModel(document)
  // One line for each signal.
  const text = JSON.stringify(data, null, 2).replace(/\{\s+"role"[^}]+\}/g, (one) =>
    one.replace(/\s+/g, ' '),
  )
  return { data, text }
}

async function rehearse(
  pool: pg.Pool,
  tried: ScoringModel,
  flags: RescoreFlags,
): Promise<CommandOutcome> {
  const { since = sinceOf('7d'), until = Date.now(), environment, html } = flags
  const organization = await organizationOf(pool, flags)
  const changes = await listNewModelChanges(pool, [])
  const exceptOrganizations = flags.everybody ? organizationsWithOwn(changes) : []
  const those = { since, until, environment, organizationId: organization?.id, exceptOrganizations }
  const models = modelsById(changes)
  const rehearsal = await rehearseRows(pool, those, { tried, modelOf: (id) => models.get(id) })
  const own = exceptOrganizations.length
  const whose =
    organization?.slug ??
    `all organizations${own > 0 ? ` but ${own} with a model of their own` : ''}`
  const scope = [whose, environment ?? []].flat().join(', ')
  const about = { tried: modelId(tried), since, until, scope }
  if (html) await writeFile(html, rescorePage(rehearsal, about))
  const data = { model: modelId(tried), scope, since: iso(since), until: iso(until), ...rehearsal }
  return { data, text: rescoreText(rehearsal, about) }
}

type Changes = Awaited<ReturnType<typeof listNewModelChanges>>

/** Includes each stored model under the id it has now: signals of later releases are added to it, which changes its id. */
function modelsById(changes: Changes): Map<string, ScoringModel> {
  const stored = changes.flatMap(({ model_id: id, document }) => {
    if (id === null || document === null) return []
    const model = storedModel(document)
    return [id, modelId(model)].map((name) => [name, model] as const)
  })
  return new Map([[modelId(standardModel), standardModel], ...stored])
}

function organizationsWithOwn(changes: Changes): string[] {
  const byOrganization = Map.groupBy(changes, ({ organization_id }) => organization_id)
  return [...byOrganization].flatMap(([id, own]) =>
    id === null || (inEffect(own, Infinity)?.model_id ?? null) === null ? [] : [id],
  )
}

/** Without a model it goes back. */
async function changeModel(
  core: Core,
  flags: RescoreFlags,
  model?: ScoringModel,
): Promise<CommandOutcome> {
  const organization = await organizationOf(core.pool, flags)
  const deps = asOperator(core, `rescore ${model ? '--switch' : '--back'}`)
  const request = {
    organizationId: organization?.id ?? null,
    effectiveAt: flags.at,
    reason: flags.reason ?? '',
  }
  const changed = await (model
    ? switchModel(deps, { ...request, model })
    : switchModelBack(deps, request))
  if (!changed)
    return { data: { switched: null }, text: 'It decides already. Nothing was changed.' }
  const { modelId: id, effectiveAt } = changed
  const whose = organization ? ['--organization', organization.slug] : ['--everybody']
  const back = typed('rescore', ...whose, '--back', '--reason', '...')
  const what = `${id ?? "everybody's model"} decides for ${organization?.slug ?? 'everybody'}`
  return {
    data: { switched: { model_id: id, effective_at: iso(effectiveAt) } },
    text: `From ${timeText(effectiveAt)} on ${what}. "${back}" returns to the one before.`,
  }
}
