import type { ApiKey, Organization } from '../../../organizations/schemas.ts'
import type { ScoringModelAnswer } from '../../../scoring/model/schemas.ts'
import { place } from '../shared/address.ts'
import { useAnswer } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { amount } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import { FactList, Panel } from '../shared/parts.tsx'
import { organizationPath } from '../shared/person.ts'
import { Scroll } from '../shared/scroll.tsx'
import { Time } from '../shared/time.tsx'
import { Loaded } from '../shell/states.tsx'
import { EnginesPanel } from './engines.tsx'
import { rightsOf } from './rights.ts'
import { SendSessions } from './send-sessions.tsx'

/** Keys of the environment, what is recorded and for how long, and the model that scores. */
export function SettingsPage() {
  const path = organizationPath()
  const keys = useAnswer<{ data: ApiKey[] }>(`${path}/api-keys`)
  const organization = useAnswer<{ data: Organization }>(path)
  const model = useAnswer<{ data: ScoringModelAnswer }>('/v1/scoring/model')
  const here = place.value?.environment
  return (
    <>
      <h1>Settings</h1>
      <Loaded answer={keys}>
        {({ data }) => <Keys keys={data.filter(({ environment }) => environment === here)} />}
      </Loaded>
      <div class="columns">
        <Loaded answer={organization}>{({ data }) => <Policy organization={data} />}</Loaded>
        <Loaded answer={model}>
          {({ data }) => (
            <Panel title="Scoring model">
              <FactList
                facts={{
                  Model: data.id,
                  Standard: data.is_standard ? 'yes' : 'no, of this organization',
                  'In force since': data.effective_at && <Time at={data.effective_at} />,
                }}
              />
              <p class="hint">
                An operator changes it with <code>tidegate rescore --switch</code>.
              </p>
            </Panel>
          )}
        </Loaded>
      </div>
      <EnginesPanel />
      <ApiRequest paths={[`${path}/api-keys`, path, '/v1/scoring/model']} />
    </>
  )
}

function Keys({ keys }: { keys: ApiKey[] }) {
  const publishable = keys.find(
    ({ type, client_target }) => type === 'publishable' && client_target === 'browser',
  )
  return (
    <>
      <Panel title="Keys">
        <Scroll label="Keys">
          <table>
            <Head columns={['Name', 'Kind', 'Key', 'Status', 'May', 'Last used']} />
            <tbody>
              {keys.map((key) => (
                <tr key={key.id}>
                  <td>{key.name}</td>
                  <td>{key.type === 'secret' ? 'secret' : `publishable, ${key.client_target}`}</td>
                  <td class="mono">{key.display_key ?? key.key_preview}</td>
                  <td>{key.status}</td>
                  <td>{rightsOf(key)}</td>
                  <td>{key.last_used_at ? <Time at={key.last_used_at} /> : <Unused />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </Panel>
      {publishable?.display_key && <SendSessions publishableKey={publishable.display_key} />}
    </>
  )
}

function Unused() {
  return (
    <span title="Check its origins, the page's consent, and whether the script is blocked">
      never
    </span>
  )
}

const inDays = (value: number | null): string =>
  value === null ? 'the default of this server' : value === 0 ? 'for ever' : amount('day', value)

function Policy({ organization: { name, data_policy: policy } }: { organization: Organization }) {
  return (
    <Panel title={name}>
      {policy && (
        <FactList
          facts={{
            Sessions: inDays(policy.session_days),
            Decisions: inDays(policy.decision_days),
            Visitors: inDays(policy.visitor_days),
            Webhooks: inDays(policy.webhook_days),
            Addresses: policy.shortens_addresses ? 'their networks only' : 'whole',
          }}
        />
      )}
      <p class="hint">
        An operator changes it with <code>tidegate org policy</code>.
      </p>
    </Panel>
  )
}
