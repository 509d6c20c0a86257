import { readFile, writeFile } from 'node:fs/promises'
import type pg from 'pg'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { listModelChanges, listNewModelChanges } from '../../../projections/policies/queries.ts'
import { iso } from '../../../projections/sessions/decision-shape.ts'
import type { Environment } from '../../../schemas/events.ts'
import { revertModel, switchModel } from '../../scoring/model/commands.ts'
import { changeInEffect, modelInForce } from '../../scoring/model/in-force.ts'
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
import { commandLine } from '../typed.ts'
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
  if (!tried || flags.printModel) return withStores(({ pool }) => readModel(pool, flags))
  if (!flags.switch) return withStores(({ pool }) => rehearse(pool, tried, flags))
  return withCore(async (core) => {
    const rehearsal = await rehearse(core.pool, tried, flags)
    if (!flags.json) console.log(rehearsal.text)
    const change = await changeModel(core, flags, tried)
    return { data: { ...rehearsal.data, ...change.data }, text: `\n${change.text}` }
  })
}

const organizationOf = async (
  pool: pg.Pool,
  { organization }: RescoreFlags,
): Promise<OrganizationRow | undefined> =>
  organization ? requireOrganization(pool, organization) : undefined

async function readModel(pool: pg.Pool, flags: RescoreFlags): Promise<CommandOutcome> {
  const organization = await organizationOf(pool, flags)
  const changes = await listModelChanges(pool, organization?.id ?? null)
  const { document } = modelInForce(changes, Date.now()).change ?? { document: null }
  const data = document === null ? standardModel : storedModel(document)
  // Print each signal on one line.
  const text = JSON.stringify(data, null, 2).replace(/\{\s+"role"[^}]+\}/g, (signal) =>
    signal.replace(/\s+/g, ' '),
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
  const excludedOrganizations = flags.everybody ? organizationsWithModel(changes) : []
  const selection = {
    since,
    until,
    environment,
    organizationId: organization?.id,
    excludedOrganizations,
  }
  const models = modelsById(changes)
  const rehearsal = await rehearseRows(pool, selection, { tried, modelOf: (id) => models.get(id) })
  const excluded = excludedOrganizations.length
  const organizations =
    organization?.slug ??
    `all organizations${excluded > 0 ? ` except ${excluded} with their own model` : ''}`
  const scope = [organizations, environment ?? []].flat().join(', ')
  const about = { tried: modelId(tried), since, until, scope }
  if (html) await writeFile(html, rescorePage(rehearsal, about))
  const data = { model: modelId(tried), scope, since: iso(since), until: iso(until), ...rehearsal }
  return { data, text: rescoreText(rehearsal, about) }
}

type Changes = Awaited<ReturnType<typeof listNewModelChanges>>

/** Returns models by id. A stored model also has its current id, which differs once a release has added signals to it. */
function modelsById(changes: Changes): Map<string, ScoringModel> {
  const stored = changes.flatMap(({ model_id: id, document }) => {
    if (id === null || document === null) return []
    const model = storedModel(document)
    return [id, modelId(model)].map((name) => [name, model] as const)
  })
  return new Map([[modelId(standardModel), standardModel], ...stored])
}

function organizationsWithModel(changes: Changes): string[] {
  const byOrganization = Map.groupBy(changes, ({ organization_id }) => organization_id)
  return [...byOrganization].flatMap(([id, modelChanges]) =>
    id === null || (changeInEffect(modelChanges, Infinity)?.model_id ?? null) === null ? [] : [id],
  )
}

/** Switches to the model, or returns to the previous one if no model is passed. */
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
  const change = await (model
    ? switchModel(deps, { ...request, model })
    : revertModel(deps, request))
  if (!change)
    return { data: { switched: null }, text: 'This model is already in use. Nothing changed.' }
  const { modelId: id, effectiveAt } = change
  const scopeFlags = organization ? ['--organization', organization.slug] : ['--everybody']
  const back = commandLine('rescore', ...scopeFlags, '--back', '--reason', '...')
  const what = `${organization?.slug ?? 'everybody'} uses ${id ?? "everybody's model"}`
  return {
    data: { switched: { model_id: id, effective_at: iso(effectiveAt) } },
    text: `From ${timeText(effectiveAt)}, ${what}. To return to the previous model: ${back}`,
  }
}
