import { Fragment, render } from 'preact'
import { useEffect } from 'preact/hooks'
import '../../../infra/http/tokens.css'
import './console.css'
import type { LoggedInPerson } from '../schemas.ts'
import { arrive, followLoginLinks, Login } from './login/login.tsx'
import { OverviewPage } from './overview/overview.tsx'
import { SessionPage } from './session/session.tsx'
import { SessionsPage } from './sessions/sessions.tsx'
import { SettingsPage } from './settings/settings.tsx'
import { followLinks, hrefOf, type PageAddress, place } from './shared/address.ts'
import { person } from './shared/person.ts'
import { followTime } from './shared/span.ts'
import { showAllText, visible } from './shared/visible.ts'
import { Shell } from './shell/shell.tsx'
import { VisitorPage } from './visitors/visitor.tsx'
import { VisitorsPage } from './visitors/visitors.tsx'
import { WebhooksPage } from './webhooks/webhooks.tsx'

function Console() {
  const here = place.value
  useEffect(() => {
    document.title = here ? `${visible(here.id ?? here.page)} · Tidegate` : 'Tidegate'
  }, [here])
  if (person.value === undefined) return <p class="waiting">Loading …</p>
  if (person.value === null) return <Login />
  return <Shell>{contentOf(here, person.value)}</Shell>
}

function contentOf(here: PageAddress | null, { environments }: LoggedInPerson) {
  if (!here) return <NoPage />
  if (!environments.includes(here.environment)) return <NotGiven environment={here.environment} />
  return <Fragment key={here.environment}>{pageOf(here)}</Fragment>
}

function pageOf(here: PageAddress) {
  switch (here.page) {
    case 'sessions':
      return here.id ? <SessionPage id={here.id} /> : <SessionsPage query={here.query} />
    case 'visitors':
      return here.id ? (
        <VisitorPage key={here.id} id={here.id} />
      ) : (
        <VisitorsPage query={here.query} />
      )
    case 'webhooks':
      return <WebhooksPage query={here.query} />
    case 'settings':
      return <SettingsPage />
    default:
      return <OverviewPage query={here.query} />
  }
}

function NoPage() {
  return (
    <section class="note">
      <h1>There is no such page</h1>
      <p>
        <a href={hrefOf({ page: 'overview' })}>Go to the overview</a>
      </p>
    </section>
  )
}

function NotGiven({ environment }: { environment: string }) {
  const [other] = person.value?.environments ?? []
  return (
    <section class="note">
      <h1>Your session was not given the environment {environment}</h1>
      {other && (
        <p>
          <a href={hrefOf({ environment: other, page: 'overview' })}>Go to {other}</a>
        </p>
      )}
    </section>
  )
}

followLinks()
followLoginLinks()
followTime()
showAllText()
render(<Console />, document.body)
await arrive()
