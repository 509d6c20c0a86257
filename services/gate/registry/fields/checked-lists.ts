import { isCriticalEnvName, isEnvName, isGateManagedEnvName } from '../../../../infra/wire/gate.ts'
import type { GateEnvVar, GateSdk } from '../../../../schemas/events.ts'
import { bounds } from './bounds.ts'
import { checkedText } from './checked-text.ts'
import { checkedUrl } from './checked-url.ts'
import { below, type Member, refused } from './refused.ts'

/** The variables that whoever signs up gets; 422 for a key that is twice in it or that no service may set. */
export function checkedEnvVars(variables: readonly GateEnvVar[], list: Member): GateEnvVar[] {
  refuseMany(variables, list, bounds.envVars)
  const checked = variables.map(({ name, key, secret }, i) => {
    const member = below(list, i)
    const shown = checkedText(name, below(member, 'name'), { max: bounds.envVarName })
    return { name: shown, key: checkedKey(key, below(member, 'key')), secret }
  })
  refuseRepeated(checked, list)
  return checked
}

function checkedKey(key: string, member: Member): string {
  if (!isEnvName(key)) {
    const expected = '1-128 letters, digits and _, not beginning with a digit'
    throw refused(member, { issue: 'invalid', expected })
  }
  if (isCriticalEnvName(key)) {
    const expected = 'a variable that changes nothing of what a process runs'
    throw refused(member, { issue: 'not_allowed', expected })
  }
  if (!isGateManagedEnvName(key)) return key
  throw refused(member, { issue: 'not_allowed', expected: 'a variable that Gate does not set itself' })
}

/** Windows knows a variable by its name in any case. */
function refuseRepeated(variables: readonly GateEnvVar[], list: Member): void {
  const seen = new Set<string>()
  for (const [i, { key }] of variables.entries()) {
    const upper = key.toUpperCase()
    if (seen.has(upper))
      throw refused(below(below(list, i), 'key'), { issue: 'repeated', expected: 'each key once' })
    seen.add(upper)
  }
}

/** How to install what speaks to the service; 422 for what does not fit. */
export function checkedSdks(sdks: readonly GateSdk[], list: Member): GateSdk[] {
  refuseMany(sdks, list, bounds.sdks)
  return sdks.map(({ label, install, url }, i) => {
    const member = below(list, i)
    return {
      label: checkedText(label, below(member, 'label'), { max: bounds.sdkLabel }),
      install: checkedText(install, below(member, 'install'), {
        max: bounds.sdkInstall,
        lines: bounds.sdkInstallLines,
      }),
      url: checkedUrl(url, below(member, 'url')),
    }
  })
}

function refuseMany(entries: readonly unknown[], list: Member, max: number): void {
  if (entries.length > max) throw refused(list, { issue: 'too_many', expected: `at most ${max}` })
}
