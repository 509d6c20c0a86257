import type { CommandDeps } from '../../infra/event-store/decide.ts'
import type { Environment } from '../../schemas/events.ts'
import { createOrganization, issueApiKey } from './commands.ts'

export interface SignUp {
  accountName: string
  gateSessionId: string
}

/**
 * The result is environment variables: a publishable and a secret key for each environment. The same random makes the
 * same organization with the same keys.
 */
export async function signUpOrganization(
  deps: CommandDeps,
  { accountName, gateSessionId }: SignUp,
): Promise<Record<string, string>> {
  const slug = slugOf(accountName, gateSessionId)
  const { organizationId } = await createOrganization(deps, { name: accountName, slug })
  // One after the other: keys drawn from the same random in another order would be other keys.
  const live = await keyPair(deps, { organizationId, environment: 'live' })
  const test = await keyPair(deps, { organizationId, environment: 'test' })
  return {
    TIDEGATE_ORGANIZATION_ID: organizationId,
    TIDEGATE_PUBLISHABLE_KEY: live.publishable,
    TIDEGATE_SECRET_KEY: live.secret,
    TIDEGATE_TEST_PUBLISHABLE_KEY: test.publishable,
    TIDEGATE_TEST_SECRET_KEY: test.secret,
  }
}

interface Owner {
  organizationId: string
  environment: Environment
}

async function keyPair(deps: CommandDeps, { organizationId, environment }: Owner) {
  const issue = { organizationId, environment, name: `Signup ${environment}`, by: 'operator' } as const
  const publishable = await issueApiKey(deps, { ...issue, type: 'publishable' })
  const secret = await issueApiKey(deps, { ...issue, type: 'secret', scopes: ['*'] })
  return { publishable: publishable.revealedKey, secret: secret.revealedKey }
}

function slugOf(accountName: string, gateSessionId: string): string {
  const readable = accountName
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .match(/[a-z0-9]+/g)
  const stem = (readable ?? ['account']).join('-').slice(0, 40).replace(/-+$/, '')
  // Nobody else has it: it ends with a part of the id of the signup.
  return `${stem}-${gateSessionId.slice(-8)}`
}
