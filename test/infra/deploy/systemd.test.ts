import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { readConfig, settingNames } from '../../../infra/config.ts'
import { stopWithinMs } from '../../../services/server/server.ts'
import { needs } from '../../support/needs.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { root } from '../../support/test-projects.ts'

const page = await readFile(path.join(root, 'docs/operate/deploying.md'), 'utf8')
const unit = /<!-- unit: tidegate@\.service -->\n```ini\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
const settingOf = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''

it('the unit has a sufficient stop timeout, and passes secrets as files', () => {
  const maxStopMs = stopWithinMs(
    readConfig({ DRAIN_MS: '60000', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }),
  )
  expect(Number(settingOf('TimeoutStopSec')) * 1000).toBeGreaterThan(maxStopMs)
  const names = settingOf('Environment')
    .split(' ')
    .map((assignment) => assignment.split('=')[0])
  expect(names).toEqual(['DATABASE_URL_FILE', 'TIDEGATE_MASTER_KEYS_FILE'])
  for (const name of names) expect(settingNames).toContain(name?.replace(/_FILE$/, ''))
  expect(settingOf('ExecStart')).toMatch(/tidegate serve --roles %i$/)
})

const folder = temporaryFolder('unit')

needs('systemd').it(
  'the unit passes systemd-analyze verify',
  async () => {
    const file = path.join(folder, 'tidegate@.service')
    // The program is not installed on this machine.
    await writeFile(file, unit.replace('/opt/tidegate/bin/tidegate', process.execPath))
    const { stderr } = await promisify(execFile)('systemd-analyze', [
      'verify',
      '--man=no',
      file,
    ]).catch((error) => error)
    expect(stderr.split('\n').filter((line: string) => line.includes('tidegate@'))).toEqual([])
  },
  30_000,
)
