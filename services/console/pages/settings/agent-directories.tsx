import type { AgentDirectory } from '../../../organizations/schemas.ts'
import { callApi } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { showForm } from '../shared/form-dialog.tsx'
import { ListTable, usePages } from '../shared/pages.tsx'
import { hasScope, organizationPath } from '../shared/person.ts'
import { RelativeTime } from '../shared/values.tsx'

/** Key directories of agents whose signatures the organization trusts. */
export function AgentDirectories() {
  const path = `${organizationPath()}/agent-directories`
  const mayManage = hasScope('organizations:update')
  const add = () =>
    showForm({
      title: 'Add agent directory',
      action: 'Add',
      text: 'Sessions signed with a key of this directory get a verified agent.',
      fields: [
        { name: 'domain', label: 'Domain', hint: 'Host of the directory, such as agent.example' },
        { name: 'name', label: 'Display name', hint: 'Optional. Default: the domain.' },
      ],
      submit: ({ domain, name }) =>
        callApi(path, { method: 'POST', body: { domain, name: name || null } }),
    })
  const remove = (domain: string) =>
    showForm({
      title: `Remove ${domain}?`,
      action: 'Remove',
      text: 'New sessions signed by its agents are no longer verified. Earlier decisions stay.',
      submit: () => callApi(`${path}/${encodeURIComponent(domain)}`, { method: 'DELETE' }),
    })
  return (
    <>
      {mayManage && (
        <button type="button" class="button add" onClick={add}>
          Add directory
        </button>
      )}
      <ListTable
        label="Agent directories"
        list={usePages<AgentDirectory>(path)}
        empty={
          <p class="note">No agent directories. Well-known agents are verified without one.</p>
        }
        keyOf={({ domain }) => domain}
        columns={{
          Domain: { class: 'mono', cell: ({ domain }) => domain },
          Name: ({ name, domain }) => name ?? domain,
          Added: ({ added_at }) => <RelativeTime at={added_at} />,
          Actions:
            mayManage &&
            (({ domain }) => (
              <button type="button" aria-label={`Remove ${domain}`} onClick={() => remove(domain)}>
                Remove
              </button>
            )),
        }}
      />
      <ApiRequest paths={[path]} />
    </>
  )
}
