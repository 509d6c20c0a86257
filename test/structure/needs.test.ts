import { expect, test } from 'vitest'
import type { NeedName } from '../support/needs/catalogue.ts'
import { filesByNeed } from '../support/needs/chosen.ts'
import { reach, readFile, testFiles } from '../support/test-projects.ts'

/** Calls that start a program that `npm ci` does not install, with the need that installs it. */
const programs: [module: string, need: NeedName][] = [
  ['test/support/chromium.ts', 'chromium'],
  ['test/support/firefox.ts', 'firefox'],
  ['test/support/window.ts', 'desktop'],
  ['test/support/old-engine.ts', 'old-engine'],
  ['test/support/debian-postgres.ts', 'postgresql'],
  ['test/support/pgbouncer.ts', 'pgbouncer'],
  ['test/support/reverse-proxies.ts', 'nginx'],
  ['test/support/edges.ts', 'nginx-njs'],
  ['test/support/docs-receivers.ts', 'go'],
  ['test/support/docker.ts', 'docker'],
  ['test/support/helm.ts', 'helm'],
  ['test/support/kafka-broker.ts', 'kafka-jars'],
]

test('a test names what it needs: needs() brings it, or skips and says why', () => {
  const files = testFiles()
  const named = filesByNeed(files)
  const silent = files.flatMap((file) => {
    const modules = reach(file, readFile)
    return programs
      .filter(([module, need]) => modules.has(module) && !named.get(need)?.includes(file))
      .map(([module, need]) => `${file} uses ${module} and does not say needs('${need}')`)
  })
  expect(silent).toEqual([])
})

test('nothing is skipped in another way; what does not apply is not registered', () => {
  const skips = /\.(?:skipIf|runIf|skip|todo|fails)\b|\bx(?:it|test|describe)\(/
  const files = testFiles().flatMap((file) => [file, ...reach(file, readFile)])
  const skipping = [...new Set(files)]
    .filter((file) => /^test\/.*\.ts$/.test(file) && file !== 'test/support/needs.ts')
    .filter((file) => file !== 'test/structure/needs.test.ts' && skips.test(readFile(file)))
  expect(skipping).toEqual([])
})
