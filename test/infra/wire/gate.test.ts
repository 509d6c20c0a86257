import { describe, expect, test } from 'vitest'
import {
  agentTokenEnvName,
  isCriticalEnvName,
  isEnvName,
  isGateManagedEnvName,
} from '../../../infra/wire/gate.ts'

describe('names of environment variables', () => {
  test.each(['PATH', 'path', 'Ld_Preload', 'NODE_OPTIONS', 'npm_config_registry', 'GIT_CONFIG_COUNT', 'ENV'])(
    '%s would hand the machine over',
    (name) => expect(isCriticalEnvName(name)).toBe(true),
  )

  test.each(['ACME_API_KEY', 'MY_PATH', 'PATHS', 'XNPM_CONFIG_X', ''])('%s is harmless', (name) =>
    expect(isCriticalEnvName(name)).toBe(false),
  )

  test.each([
    ['acme', 'ACME_GATE_AGENT_TOKEN'],
    ['acme-mail_2', 'ACME_MAIL_2_GATE_AGENT_TOKEN'],
  ])('the agent token of %s is %s, which is for Gate alone', (serviceId, name) => {
    expect(agentTokenEnvName(serviceId)).toBe(name)
    expect(isGateManagedEnvName(name)).toBe(true)
    expect(isGateManagedEnvName(name.toLowerCase())).toBe(true)
  })

  test('so is the name that older clients know, and no other', () => {
    expect(isGateManagedEnvName('FOIL_AGENT_TOKEN')).toBe(true)
    expect(isGateManagedEnvName('ACME_AGENT_TOKEN')).toBe(false)
  })

  test.each(['A', '_a1', 'a'.repeat(128)])('%s is a name', (name) => expect(isEnvName(name)).toBe(true))

  test.each(['', '1A', 'A-B', 'A B', 'A=B', 'Ä', 'A\n', 'a'.repeat(129)])('%j is none', (name) =>
    expect(isEnvName(name)).toBe(false),
  )
})
