import { CannotBe } from './cannot-be.ts'
import type { Need } from './catalogue.ts'
import { messageOf, type Packages } from './packages.ts'

export interface Missing {
  name: string
  tests: string
  files: string[]
  reason: string
  /** Command that would install it. */
  remedy?: string
  /** True if this machine could have provided it. */
  couldBe: boolean
}

export interface Provided {
  met: string[]
  missing: Missing[]
  stop(): Promise<void>
}

interface Wanted {
  catalogue: Record<string, Need>
  /** Test files by need. */
  files: Map<string, string[]>
  packages: Packages
  /** True to purge first what tests installed on this machine. */
  isFresh: boolean
}

/** Provides the needs, with a single installation of packages. Returns missing ones instead of throwing. */
export async function provideAll({
  catalogue,
  files,
  packages,
  isFresh,
}: Wanted): Promise<Provided> {
  const wanted = [...files].flatMap(([name, files]) => {
    const need = catalogue[name]
    return need ? { name, need, files } : []
  })
  if (isFresh) await packages.purge()
  const refusal = await installLacking(
    wanted.map(({ need }) => need),
    packages,
  )
  const made = await Promise.all(
    wanted.map(async ({ name, need, files }) => ({
      name,
      tests: need.tests,
      files,
      outcome: await make(need, refusal),
    })),
  )
  const missing = made.flatMap(({ outcome, ...one }): Missing[] =>
    outcome.kind === 'missing' ? [{ ...one, ...outcome.why }] : [],
  )
  return {
    met: made.filter(({ outcome }) => outcome.kind === 'here').map(({ name }) => name),
    missing,
    async stop() {
      for (const { outcome } of made) if (outcome.kind === 'here') await outcome.end?.()
    },
  }
}

const isHere = async ({ isHere }: Need): Promise<boolean> => (isHere ? isHere() : true)

/** Installs missing packages. Returns the reason if it is impossible or fails. */
async function installLacking(needs: Need[], packages: Packages): Promise<string | undefined> {
  const here = await Promise.all(needs.map(isHere))
  const lacking = needs.filter((_, index) => !here[index])
  if (lacking.length === 0) return undefined
  const names = [...new Set(lacking.flatMap(({ packages = [] }) => packages))].sort()
  const why = lacking.map(({ tests }) => tests).join('; ')
  return packages.refusal() ?? packages.install(names, why).then(() => undefined, messageOf)
}

type Outcome =
  | { kind: 'here'; end: (() => Promise<void>) | undefined }
  | { kind: 'missing'; why: Pick<Missing, 'reason' | 'remedy' | 'couldBe'> }

async function make(need: Need, refusal: string | undefined): Promise<Outcome> {
  const { packages = [] } = need
  if (!(await isHere(need))) {
    const reason = refusal ?? `it is not here, although apt-get installed ${packages.join(' ')}`
    const remedy = `sudo apt-get install ${packages.join(' ')}`
    return { kind: 'missing', why: { reason, remedy, couldBe: true } }
  }
  try {
    return { kind: 'here', end: (await need.make?.()) ?? undefined }
  } catch (error) {
    return {
      kind: 'missing',
      why: { reason: messageOf(error), couldBe: !(error instanceof CannotBe) },
    }
  }
}
