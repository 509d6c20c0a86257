import { afterEach, expect, test, vi } from 'vitest'
import { commandLine, programName } from '../../../services/cli/typed.ts'

afterEach(() => vi.unstubAllEnvs())

test('a command is shown as it was called', () => {
  expect(programName({ npm_lifecycle_event: 'tidegate' })).toBe('npm run -s tidegate --')
  expect(programName({ npm_lifecycle_event: 'npx' })).toBe('npx tidegate')
  expect(programName({ npm_lifecycle_event: 'postinstall' })).toBe('tidegate')
  expect(programName({})).toBe('tidegate')
})

test('it can be typed again, whatever its arguments are', () => {
  vi.stubEnv('npm_lifecycle_event', 'npx')
  expect(commandLine('signup', 'acme', '--env-file', "it's $HOME")).toBe(
    `npx tidegate signup acme --env-file 'it'\\''s $HOME'`,
  )
})
