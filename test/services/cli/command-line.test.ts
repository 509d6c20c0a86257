import { afterEach, expect, test, vi } from 'vitest'
import { commandLine, programName } from '../../../services/cli/command-line.ts'

afterEach(() => vi.unstubAllEnvs())

test('a command is shown as the program was started', () => {
  expect(programName({ npm_lifecycle_event: 'tidegate' })).toBe('npm run -s tidegate --')
  expect(programName({ npm_lifecycle_event: 'npx' })).toBe('npx tidegate')
  expect(programName({ npm_lifecycle_event: 'postinstall' })).toBe('tidegate')
  expect(programName({})).toBe('tidegate')
})

test('arguments are quoted for the shell', () => {
  vi.stubEnv('npm_lifecycle_event', 'npx')
  expect(commandLine('signup', 'acme', '--env-file', "it's $HOME")).toBe(
    `npx tidegate signup acme --env-file 'it'\\''s $HOME'`,
  )
})
