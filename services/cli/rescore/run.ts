import { readFile, writeFile } from 'node:fs/promises'
import type pg from 'pg'
import { iso } from '../../../infra/iso.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { listModelChanges, listNewModelChanges } from '../../../projections/policies/queries.ts'
import type { Environment } from '../../../schemas/events.ts'
import { revertModel, switchModel } from '../../scoring/model/commands.ts'
import { changeInEffect, modelInForce } from '../../scoring/model/in-force.ts'
import { modelId, type ScoringModel, standardModel } from '../../scoring/model/model.ts'
import { parseCustomModel, parseStoredModel } from '../../scoring/model/parse-model.ts'
import type { Core } from '../../server/dependencies.ts'
import { since as parseSince } from '../arguments.ts'
import { commandLine } from '../command-line.ts'
import { withStores } from '../operator/core.ts'
import {
  asOperator,
  type CommandOutcome,
  type OperatorOptions,
  requireOrganization,
  withCore,
} from '../operator/run.ts'
import { timeText } from '../tables.ts'
import { rescoreText } from './report.ts'
import { rescorePage } from './report-html.ts'
import { rehearseSessions } from './rows.ts'

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
  const candidate =
    flags.model === undefined ? undefined : parseCustomModel(await readFile(flags.model, 'utf8'))
  if (flags.back) return withCore((core) => changeModel(core, flags))
  if (!candidate || flags.printModel) return withStores(({ pool }) => currentModel(pool, flags))
  if (!flags.switch) return withStores(({ pool }) => rehearse(pool, candidate, flags))
  return withCore(async (core) => {
    const rehearsal = await rehearse(core.pool, candidate, flags)
    if (!flags.json) console.log(rehearsal.text)
    const change = await changeModel(core, flags, candidate)
    return { data: { ...rehearsal.data, ...change.data }, text: `\n${change.text}` }
  })
}

const selectedOrganization = async (
  pool: pg.Pool,
  { organization }: RescoreFlags,
): Promise<OrganizationRow | undefined> =>
  organization ? requireOrganization(pool, organization) : undefined

async function currentModel(pool: pg.Pool, flags: RescoreFlags): Promise<CommandOutcome> {
  const organization = await selectedOrganization(pool, flags)
  const changes = await listModelChanges(pool, organization?.id ?? null)
  const { document } = modelInForce(changes, Date.now()).change ?? { document: null }
  const data = document === null ? standardModel : parseStoredModel(document)
  // Print each signal on one line.
  const text = JSON.stringify(data, null, 2).replace(/\{\s+"role"[^}]+\}/g, (signal) =>
    signal.replace(/\s+/g, ' '),
  )
  return { data, text }
}

async function rehearse(
  pool: pg.Pool,
  candidate: ScoringModel,
  flags: RescoreFlags,
): Promise<CommandOutcome> {
  const { since = parseSince('7d'), until = Date.now(), environment, html } = flags
  const organization = await selectedOrganization(pool, flags)
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
  const modelOf = (id: string) => models.get(id)
  const rehearsal = await rehearseSessions(pool, selection, { candidate, modelOf })
  const excluded = excludedOrganizations.length
  const organizations =
    organization?.slug ??
    `all organizations${excluded > 0 ? ` except ${excluded} with their own model` : ''}`
  const scope = [organizations, environment ?? []].flat().join(', ')
  const context = { candidateId: modelId(candidate), since, until, scope }
  if (html) await writeFile(html, rescorePage(rehearsal, context))
  const times = { since: iso(since), until: iso(until) }
  const data = { model: context.candidateId, scope, ...times, ...rehearsal }
  return { data, text: rescoreText(rehearsal, context) }
}

type Changes = Awaited<ReturnType<typeof listNewModelChanges>>

/** Returns models by id. Stored models are also under their current id, which changes when a release adds signals. */
function modelsById(changes: Changes): Map<string, ScoringModel> {
  const stored = changes.flatMap(({ model_id: id, document }) => {
    if (id === null || document === null) return []
    const model = parseStoredModel(document)
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
  const organization = await selectedOrganization(core.pool, flags)
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
  const usage = `${organization?.slug ?? 'everybody'} uses ${id ?? "everybody's model"}`
  return {
    data: { switched: { model_id: id, effective_at: iso(effectiveAt) } },
    text: `From ${timeText(effectiveAt)}, ${usage}. To return to the previous model: ${back}`,
  }
}
