import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { symlink } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, onTestFailed } from 'vitest'
import { projections } from '../../services/server/dependencies.ts'
import { allRoles, type Role } from '../../services/server/roles.ts'
import { createInstallation, type Installation, type Owner, operator } from '../support/cluster.ts'
import { needs } from '../support/needs.ts'
import { documentedSteps, sectionOf } from '../support/printed-commands.ts'
import {
  mainOf,
  type RoleProcesses,
  readBack,
  rebuildIsEqual,
  startRoles,
} from '../support/roles.ts'
import { startTraffic } from '../support/session-traffic.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/test-projects.ts'

const { describe, it } = needs('kafka', 'history')

const page = 'docs/operate/production.md'
const rebuildStep = ['rebuild', '<name>', '--accept-differences']
const documented = {
  Upgrade: [['config', 'check'], ['migrate'], rebuildStep],
  Rollback: [rebuildStep],
}
const seed = process.env.SEED ?? randomBytes(4).toString('hex')
const sessions = 150
const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
/** The newest release. Before the first one, roles are replaced by the same program. */
const before = git('tag', '--list', 'v*', '--sort=-version:refname').split('\n')[0] || 'HEAD'

describe(`an update of each role, seed ${seed}`, () => {
  const program = path.join(temporaryFolder('upgrade'), 'before')
  /** Read models that have another version there. */
  let otherVersions: string[]
  let installation: Installation
  let roles: RoleProcesses
  let owner: Owner
  const finished: string[] = []

  beforeAll(async () => {
    git('worktree', 'add', '--force', '--detach', program, before)
    await symlink(path.join(root, 'node_modules'), path.join(program, 'node_modules'))
    otherVersions = await readModelsThatDiffer(program)
    installation = await createInstallation({ log: 'kafka', isEmpty: true })
    roles = await startRoles(installation.settings, { program })
    owner = await operator({ ...installation.settings, PROGRAM: mainOf(program) }).organization()
  }, 180_000)

  /** Runs the commands of the page with the program that is to come. */
  async function runSteps(
    heading: 'Upgrade' | 'Rollback',
    main: Record<string, string>,
  ): Promise<void> {
    const steps = await documentedSteps(page, heading)
    expect(steps).toEqual(documented[heading])
    for (const step of steps)
      for (const name of step.includes('<name>') ? otherVersions : ['']) {
        const args = step.map((word) => (word === '<name>' ? name : word))
        const { code, stdout, stderr } = await operator({ ...installation.settings, ...main }).cli(
          args,
        )
        if (code !== 0) throw new Error(`${args.join(' ')}: ${stdout}${stderr}`)
      }
  }

  async function documentedOrder(): Promise<Role[]> {
    const [, listed = ''] =
      /Replace one role after the other: (.*?)\./.exec(await sectionOf(page, 'Upgrade')) ?? []
    const order = allRoles.toSorted(
      (a, b) => listed.indexOf(`\`${a}\``) - listed.indexOf(`\`${b}\``),
    )
    expect(order.map((role) => `\`${role}\``).join(', ')).toBe(listed)
    return order
  }

  afterAll(async () => {
    await roles?.stop()
    await installation?.stop()
    git('worktree', 'remove', '--force', program)
  }, 60_000)

  it.each([
    ['to this program', undefined],
    ['and back', 'before'],
    ['and here again', undefined],
  ])(
    '%s loses nothing and refuses nothing',
    async (way, from) => {
      onTestFailed(() => console.log(roles.lastWords()))
      const traffic = startTraffic({
        baseUrl: () => roles.url('collect'),
        publishableKey: owner.publishable.key,
        seed: `${seed} ${way}`,
        sessions,
        atOnce: 4,
      })
      if (from) await runSteps('Rollback', { PROGRAM: mainOf(program) })
      else await runSteps('Upgrade', {})
      for (const role of await documentedOrder()) await roles.replace(role, from && program)
      await traffic.done
      finished.push(...traffic.finished)
      const { lost, listed } = await readBack(roles.url('api'), owner, finished)
      const { failed, givenUp, answers } = traffic
      console.log(
        `${way}: ${traffic.finished.length} sessions, ${lost.length} lost, answers ${JSON.stringify(answers)}`,
      )
      expect({ failed, givenUp, lost }).toEqual({ failed: [], givenUp: [], lost: [] })
      expect(listed).toBe(finished.length)
    },
    240_000,
  )

  it.each(projections.map(({ name }) => name))(
    'has no wrong row: a rebuild of %s is equal',
    (name) => rebuildIsEqual(installation.settings, name),
    120_000,
  )
})

async function readModelsThatDiffer(program: string): Promise<string[]> {
  const there: { projections: typeof projections } = await import(
    path.join(program, 'services/server/dependencies.ts')
  )
  const versions = new Map(there.projections.map(({ name, version }) => [name, version]))
  return projections
    .filter(({ name, version }) => versions.get(name) !== version)
    .map(({ name }) => name)
}
