import './gate.css'
import type {
  GateAgentAccount,
  GateServiceSignupCounts,
  GateSignupCounts,
} from '../../../gate/management/schemas.ts'
import type { ManagedGateService } from '../../../gate/registry/schemas.ts'
import { currentPage, serverPath } from '../shared/address.ts'
import { callApi, useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { showForm } from '../shared/form-dialog.tsx'
import { formatNumber, formatPercent } from '../shared/format.ts'
import { ListTable, usePages } from '../shared/pages.tsx'
import { hasScope } from '../shared/person.ts'
import { now, spanOf, timesOf } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import { RelativeTime, ShortId } from '../shared/values.tsx'
import { Loaded } from '../shell/loaded.tsx'

const servicesPath = '/v1/gate/services'
const accountsPath = '/v1/gate/agent-accounts'

/** Services that agents can sign up for, their signups, and the accounts that they created. */
export function GateSettings({ query }: { query: URLSearchParams }) {
  const isChosen = ['last', 'since', 'until'].some((name) => query.has(name))
  const span = spanOf(isChosen ? query : new URLSearchParams({ last: '30d' }), now.value)
  const period = new URLSearchParams(timesOf(span))
  const countsPath = `/v1/gate/signup-counts?${period}`
  const services = useResponse<{ data: ManagedGateService[] }>(servicesPath)
  return (
    <>
      <div class="title">
        <h2>Services</h2>
        {services.data?.data[0] && <SpanChoice span={span} />}
      </div>
      <Loaded response={services} lines={8}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="note">
              No service is registered in {currentPage.value?.environment}.{' '}
              <a href={`${serverPath}/docs/guide/gate-services`}>Register a service</a>
            </p>
          ) : (
            data.map((service) => <Service key={service.id} {...{ service, countsPath }} />)
          )
        }
      </Loaded>
      {services.data?.data[0] && <Accounts services={services.data.data} />}
      <ApiRequest paths={[servicesPath, countsPath, accountsPath]} />
    </>
  )
}

interface ServiceProps {
  service: ManagedGateService
  countsPath: string
}

function Service({ service, countsPath }: ServiceProps) {
  const counts = useResponse<{ data: GateSignupCounts }>(countsPath)
  const { id, name, status, discoverable, verified_domain: domain, branding } = service
  const preview = `${serverPath}/console/consent-preview/${currentPage.value?.environment}/${id}`
  const open = discoverable ? ['good', 'open for signups'] : ['', 'not listed']
  const [style, state] = status === 'disabled' ? ['bad', 'disabled'] : open
  return (
    <section class="panel" aria-label={name}>
      <header class="title">
        <div class="row">
          <h3>
            {name} <code class="hint">{id}</code>
          </h3>
          <span class={`badge ${style}`}>{state}</span>
          {branding.verified && <span class="badge good">verified service</span>}
          <span class={`badge ${domain ? 'good' : 'warn'}`}>
            {domain ? `${domain} verified` : 'domain not verified'}
          </span>
        </div>
        <a href={preview} target="_blank" rel="noopener">
          Preview consent page
        </a>
      </header>
      <Loaded response={counts}>
        {({ data: { services, complete, since } }) => (
          <>
            <Funnel counts={services.find(({ service_id }) => service_id === id)} />
            {!complete && (
              <p class="hint">
                Too many signups to count. Showing those since <RelativeTime at={since} />.
              </p>
            )}
          </>
        )}
      </Loaded>
    </section>
  )
}

const steps = [
  ['started', 'Started'],
  ['approved', 'Approved'],
  ['created', 'Account created'],
  ['delivered', 'Credentials delivered'],
] as const
const losses = [
  ['declined', 'declined'],
  ['closed', 'page closed'],
  ['expired', 'expired'],
  ['claim_failed', 'wrong claim codes'],
  ['integrator_failed', 'failed at the service'],
] as const

function Funnel({ counts }: { counts: GateServiceSignupCounts | undefined }) {
  if (!counts?.started) return <p class="hint">No signups in this period</p>
  const lost = losses.filter(([outcome]) => counts[outcome] > 0)
  return (
    <>
      <ul class="stats">
        {steps.map(([step, title], i) => {
          const [before] = steps[i - 1] ?? []
          return (
            <li key={step} class="stat">
              <span>{title}</span>
              <b>{formatNumber(counts[step])}</b>
              <span class="delta">
                {before
                  ? `${formatPercent(counts[step], counts[before])} of ${before}`
                  : `${formatNumber(counts.pending)} pending`}
              </span>
              <progress aria-hidden="true" max={counts.started} value={counts[step]} />
            </li>
          )
        })}
      </ul>
      {lost.length > 0 && (
        <p class="row hint">
          Not completed:
          {lost.map(([outcome, title]) => (
            <span key={outcome}>
              <b>{formatNumber(counts[outcome])}</b> {title}
            </span>
          ))}
        </p>
      )}
    </>
  )
}

const tokenStyles = { active: 'good', expired: '', revoked: 'bad' }

function Accounts({ services }: { services: ManagedGateService[] }) {
  const nameOf = (id: string) => services.find((service) => service.id === id)?.name ?? id
  const revoke = ({ id, account_name: name, service_id }: GateAgentAccount) =>
    showForm({
      title: `Revoke the token of ${name ?? id}?`,
      action: 'Revoke',
      text: `The agent can't prove to ${nameOf(service_id)} that it has this account or request dashboard logins anymore, and unused login codes stop working. Its other credentials stay valid. This can't be undone.`,
      submit: () => callApi(`${accountsPath}/${id}/token`, { method: 'DELETE' }),
    })
  return (
    <section class="panel">
      <h2>Agent accounts</h2>
      <ListTable
        label="Agent accounts"
        list={usePages<GateAgentAccount>(`${accountsPath}?limit=50`)}
        empty={
          <p class="hint">
            No agent has signed up. Try it: <code>tidegate signup {services[0]?.id}</code>
          </p>
        }
        keyOf={({ id }) => id}
        columns={{
          Account: ({ account_name: name }) => name ?? 'erased',
          Id: ({ id }) => <ShortId id={id} />,
          Service: ({ service_id: id }) => nameOf(id),
          Created: ({ created_at: at }) => <RelativeTime at={at} />,
          Token: ({ token }) =>
            token ? (
              <span class={`badge ${tokenStyles[token.status]}`}>{token.status}</span>
            ) : (
              'none'
            ),
          'Last used': ({ token }) => token && <RelativeTime at={token.last_used_at} />,
          Actions:
            hasScope('gate:agent_tokens:revoke') &&
            ((account) =>
              account.token?.status === 'active' && (
                <button
                  type="button"
                  class="plain danger"
                  aria-label={`Revoke the token of ${account.account_name ?? account.id}`}
                  onClick={() => revoke(account)}
                >
                  Revoke
                </button>
              )),
        }}
      />
    </section>
  )
}
