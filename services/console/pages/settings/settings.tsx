import type { ApiKey, Organization } from '../../../organizations/schemas.ts'
import type { ScoringModelResponse } from '../../../scoring/model/schemas.ts'
import { currentPage } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { pluralize } from '../shared/format.ts'
import { FactList, Panel } from '../shared/panel.tsx'
import { organizationPath } from '../shared/person.ts'
import { RelativeTime } from '../shared/relative-time.tsx'
import { ScrollRegion } from '../shared/scroll-region.tsx'
import { TableHead } from '../shared/table-head.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { EnginesPanel } from './engines.tsx'
import { describePermissions } from './permissions.ts'
import { SendSessions } from './send-sessions.tsx'

export function SettingsPage() {
  const path = organizationPath()
  const keys = useResponse<{ data: ApiKey[] }>(`${path}/api-keys`)
  const organization = useResponse<{ data: Organization }>(path)
  const model = useResponse<{ data: ScoringModelResponse }>('/v1/scoring/model')
  const current = currentPage.value?.environment
  return (
    <>
      <h1>Settings</h1>
      <Loaded response={keys}>
        {({ data }) => <Keys keys={data.filter(({ environment }) => environment === current)} />}
      </Loaded>
      <div class="columns">
        <Loaded response={organization}>
          {({ data }) => <DataPolicyPanel organization={data} />}
        </Loaded>
        <Loaded response={model}>
          {({ data }) => (
            <Panel title="Scoring model">
              <FactList
                facts={{
                  Model: data.id,
                  Standard: data.is_standard ? 'yes' : 'no, specific to this organization',
                  'Active since': data.effective_at && <RelativeTime at={data.effective_at} />,
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
        <ScrollRegion label="Keys">
          <table>
            <TableHead columns={['Name', 'Type', 'Key', 'Status', 'Permissions', 'Last used']} />
            <tbody>
              {keys.map((key) => (
                <tr key={key.id}>
                  <td>{key.name}</td>
                  <td>{key.type === 'secret' ? 'secret' : `publishable, ${key.client_target}`}</td>
                  <td class="mono">{key.display_key ?? key.key_preview}</td>
                  <td>{key.status}</td>
                  <td>{describePermissions(key)}</td>
                  <td>
                    {key.last_used_at ? <RelativeTime at={key.last_used_at} /> : <NeverUsed />}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollRegion>
      </Panel>
      {publishable?.display_key && <SendSessions publishableKey={publishable.display_key} />}
    </>
  )
}

function NeverUsed() {
  return (
    <span title="Check the allowed origins, the page's consent, and whether the script is blocked">
      never
    </span>
  )
}

const inDays = (value: number | null): string =>
  value === null ? 'server default' : value === 0 ? 'forever' : pluralize('day', value)

function DataPolicyPanel({
  organization: { name, data_policy: policy },
}: {
  organization: Organization
}) {
  return (
    <Panel title={name}>
      {policy && (
        <FactList
          facts={{
            Sessions: inDays(policy.session_days),
            Decisions: inDays(policy.decision_days),
            Visitors: inDays(policy.visitor_days),
            Webhooks: inDays(policy.webhook_days),
            'IP addresses': policy.shortens_addresses ? 'shortened' : 'full',
          }}
        />
      )}
      <p class="hint">
        An operator changes it with <code>tidegate org policy</code>.
      </p>
    </Panel>
  )
}
