import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readConfig } from '../../infra/config.ts'
import { readFile } from '../support/test-projects.ts'

// `make run` has these ports while `make test` runs.
const defaultPorts = Object.entries(readConfig({}))
  .filter(([name, value]) => /PORT$/.test(name) && typeof value === 'number')
  .map(([, value]) => value)

const texts = new Map(globSync('test/**/*.ts').map((file) => [file, readFile(file)]))
const matching = (pattern: RegExp) => [...texts].filter(([, text]) => pattern.test(text))

test('every test that starts the program does so on a free port', () => {
  const naming = matching(
    /services\/cli\/main\.ts'|\.bin\/tidegate\b|inject\('program'\)|spawn\('make'/,
  )
  const starting = naming.filter(([, text]) =>
    /^import \{[^}]*\} from 'node:child_process'$/m.test(text),
  )
  expect(starting.map(([file]) => file)).toContain('test/support/program.ts')
  // `make run-kafka`, whose test gives it a port.
  const named = starting.filter(([file]) => file !== 'test/support/run-kafka.ts')
  expect(named.filter(([, text]) => !/\bPORT: '0'/.test(text)).map(([file]) => file)).toEqual([])
})

test('no test listens on a default port', () => {
  expect(defaultPorts).toContain(8787)
  const either = defaultPorts.join('|')
  const listening = new RegExp(
    `PORT: '(?:${either})'|\\bport: (?:${either})\\b|listen\\((?:${either})\\b`,
  )
  expect(matching(listening).map(([file]) => file)).toEqual([])
})
