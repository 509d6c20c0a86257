import type { Browser } from '../../../schemas/events.ts'
import type { Facts } from '../facts.ts'
import { clientBrands } from './hints.ts'

/** The browser as it names itself: client hints first, then the user agent string. */
export function browserOf(facts: Facts): Browser {
  const { agent, snapshot } = facts
  if (snapshot?.native) return appBrowser(snapshot.native.bundle_id)
  const brand = clientBrands(facts)
  const version = snapshot?.navigator.ua_full_version ?? brand?.version ?? agent.version
  return {
    name: brand?.brand ?? agent.browser,
    version,
    major_version: version?.split('.')[0] ?? null,
    engine: agent.engine,
    app_name: agent.appName,
  }
}

function appBrowser(app: string | null): Browser {
  return { name: null, version: null, major_version: null, engine: 'native', app_name: app }
}
