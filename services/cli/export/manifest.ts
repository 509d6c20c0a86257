import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { parsedJson } from '../../../infra/text.ts'
import { systemCode } from '../thrown.ts'
import { exportFormats, moveIntoPlace, unfinished } from './part.ts'

const partSchema = z.object({
  file: z.string(),
  /** Of the topic; null for sessions. */
  partition: z.int().nullable(),
  /** The first offset, or the first place in the list of sessions. */
  from: z.int(),
  /** Not included. */
  to: z.int(),
  /** null until it is whole. */
  rows: z.int().nullable(),
})
export type ExportPart = z.infer<typeof partSchema>

// What the command named. Times are as they were typed, so that the same command means the same export.
const filtersSchema = z.object({
  since: z.string().nullable(),
  until: z.string().nullable(),
  organization_id: z.string().nullable(),
  environment: z.string().nullable(),
  topic: z.string().nullable(),
  type: z.string().nullable(),
})

const manifestSchema = z.object({
  version: z.literal(1),
  what: z.enum(['sessions', 'events']),
  format: z.enum(exportFormats),
  /** Whether it has what is opened with the master keys only. */
  is_open: z.boolean(),
  filters: filtersSchema,
  /** Epoch milliseconds. */
  since: z.number(),
  /** Epoch milliseconds, not included. */
  until: z.number(),
  columns: z.array(z.object({ name: z.string(), type: z.string() })),
  state: z.enum(['unfinished', 'whole']),
  rows: z.int(),
  parts: z.array(partSchema),
})
export type ExportManifest = z.infer<typeof manifestSchema>
export type ExportRequest = Pick<ExportManifest, 'what' | 'format' | 'is_open' | 'filters'>

const manifestFile = 'manifest.json'
export const sessionList = 'sessions.txt'

/**
 * The manifest of the folder's export; undefined where it has none yet, and the folder is made. Throws where it has
 * other files, or another export.
 */
export async function findManifest(
  folder: string,
  request: ExportRequest,
): Promise<ExportManifest | undefined> {
  await mkdir(folder, { recursive: true })
  const text = await readFile(path.join(folder, manifestFile), 'utf8').catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT') throw error
  })
  if (text === undefined) return refuseFiles(folder)
  const found = manifestSchema.safeParse(parsedJson(text))
  if (!found.success) throw new Error(`${manifestFile} in ${folder} is not of an export. ${another}`)
  const differing = differencesOf(found.data, request)
  if (differing.length === 0) return found.data
  throw new Error(`${folder} has another export: it differs in ${differing.join(', ')}. ${another}`)
}

const another = '--output needs a folder of its own.'

// Where its choice was interrupted it is made anew.
async function refuseFiles(folder: string): Promise<undefined> {
  const own = [sessionList, unfinished(sessionList), unfinished(manifestFile)]
  const other = (await readdir(folder)).find((name) => !own.includes(name))
  if (other !== undefined) throw new Error(`${folder} has other files, such as ${other}. ${another}`)
}

function differencesOf(found: ExportRequest, request: ExportRequest): string[] {
  const membersOf = ({ filters, what, format, is_open }: ExportRequest) => ({
    ...{ what, format, open: is_open },
    ...filters,
  })
  const before = new Map<string, unknown>(Object.entries(membersOf(found)))
  return Object.entries(membersOf(request)).flatMap(([name, value]) =>
    before.get(name) === value ? [] : name.replace('organization_id', 'organization'),
  )
}

export async function saveManifest(folder: string, manifest: ExportManifest): Promise<void> {
  const file = path.join(folder, manifestFile)
  await writeFile(unfinished(file), `${JSON.stringify(manifest, null, 1)}\n`)
  await moveIntoPlace(file)
}

/** The parts that are not whole, or whose files are gone. */
export async function missingParts(folder: string, { parts }: ExportManifest): Promise<ExportPart[]> {
  const there = new Set(await readdir(folder))
  return parts.filter(({ file, rows }) => rows === null || !there.has(file))
}
