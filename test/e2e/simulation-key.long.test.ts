import { copyFile, readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readSimulationKey } from '../../infra/local/development.ts'
import type { SimulationKey } from '../../infra/wire/collect/simulation.ts'
import type { SimulationReport } from '../../services/cli/simulate/report.ts'
import { cli } from '../support/cli.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { approveOverHttp, requestSignup } from '../support/gate-approve.ts'
import { createRest } from '../support/rest.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const sessions = 6
const load = ['simulate', '--clients', 'web=1', '--bots', '0', '--sessions', String(sessions)]

const empty = temporaryFolder('no-key')
let dev: RunningTidegate
beforeAll(async () => {
  dev = await startTidegate()
})
afterAll(() => dev?.stop())

interface Place {
  /** Folder with the script's key. */
  dataDir: string
  /** Flags that name the server. */
  server?: string[]
}

async function simulate({ dataDir, server = [] }: Place): Promise<SimulationReport> {
  const { code, stdout, stderr } = await cli([...load, ...server, '--verify', '--json'], {
    DATA_DIR: dataDir,
  })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

const inconclusive = {
  hasKey: true,
  verification: { proven: 0, verdicts: { human: { uncertain: sessions } } },
}

describe('given tidegate dev', () => {
  it('when a script has its key, then it is human, and each answer says that it is simulated', async () => {
    const { mode } = await stat(path.join(dev.dataDir, 'simulation-key'))
    expect(mode & 0o777).toBe(0o600)
    expect(await simulate(dev)).toMatchObject({
      hasKey: true,
      verification: { proven: sessions, verdicts: { human: { human: sessions } } },
    })
    const rest = createRest(dev.baseUrl, dev.credentials.live.secret_key)
    for (const { id } of await rest.sessions()) {
      const { evidence } = await rest.session(id)
      expect(evidence?.sources).toContain('simulated_answers')
      expect(evidence?.sources).not.toContain('recorded_answers')
    }
  })

  it('when a script has no key, then it is inconclusive, and that is no failure', async () => {
    const { publishable_key, secret_key } = dev.credentials.live
    const keys = ['--publishable-key', publishable_key, '--secret-key', secret_key]
    const report = await simulate({ dataDir: empty, server: ['--base-url', dev.baseUrl, ...keys] })
    expect(report).toMatchObject({ ...inconclusive, hasKey: false })
  })
})

describe("given a consent page of tidegate dev and Gate's reference client", () => {
  /** Without typing the account's name, which only a person need not. */
  async function approve(simulationKey?: SimulationKey): Promise<number> {
    const { baseUrl } = dev
    const { id: gateSessionId } = await requestSignup(baseUrl)
    return (await approveOverHttp({ baseUrl, gateSessionId, simulationKey })).status
  }

  it('when it has the key, then it approves as a person does', async () => {
    expect(await approve(readSimulationKey(dev.dataDir))).toBe(200)
  })

  it('when it has none, then it is asked what only a person types', async () => {
    expect(await approve()).toBe(422)
  })
})

describe('given tidegate serve', () => {
  const started: Cluster[] = []
  afterAll(async () => {
    for (const cluster of started) await cluster.stop()
  })

  /** With all that anybody may think makes a key count. */
  async function settings(): Promise<Record<string, string>> {
    const read = async (name: string) =>
      (await readFile(path.join(dev.dataDir, name), 'utf8')).trim()
    const [key, masterKeys] = await Promise.all([read('simulation-key'), read('master-keys')])
    const file = path.join(dev.dataDir, 'simulation-key')
    const named = ['SIMULATION_KEY', 'TIDEGATE_SIMULATION_KEY'].flatMap((name) => [
      [name, key],
      [`${name}_FILE`, file],
      [`${name}_COMMAND`, `cat ${file}`],
    ])
    const asDevelopment = { NODE_ENV: 'development', TIDEGATE_ENV: 'dev', TIDEGATE_DEV: '1' }
    return { ...Object.fromEntries(named), ...asDevelopment, TIDEGATE_MASTER_KEYS: masterKeys }
  }

  it.each([
    ['in the DATA_DIR of tidegate dev', async () => dev.dataDir],
    [
      'with a copy of its key',
      async () => {
        await copyFile(path.join(dev.dataDir, 'simulation-key'), path.join(empty, 'simulation-key'))
        return empty
      },
    ],
  ])(
    '%s and with every setting, when a script has the key, then it is inconclusive',
    async (_, folder) => {
      const dataDir = await folder()
      const cluster = await startCluster({ env: { ...(await settings()), DATA_DIR: dataDir } })
      started.push(cluster)
      const { publishable, secret } = cluster.owner
      const keys = ['--publishable-key', publishable.key, '--secret-key', secret.key]
      const server = ['--base-url', cluster.baseUrl, ...keys]
      expect(await simulate({ dataDir, server })).toMatchObject(inconclusive)
    },
    60_000,
  )

  it('when the key is named on its command line, then it does not start', async () => {
    const file = path.join(dev.dataDir, 'simulation-key')
    const { code, stderr } = await cli(['serve', '--simulation-key', file], {})
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('unknown option') })
  })
})
