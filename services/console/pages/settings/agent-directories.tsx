import type { AgentDirectory } from '../../../organizations/schemas.ts'
import { callApi, useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { DataTable } from '../shared/data-table.tsx'
import { useFormDialog } from '../shared/form-dialog.tsx'
import { hasScope, organizationPath } from '../shared/person.ts'
import { RelativeTime } from '../shared/values.tsx'
import { Loaded } from '../shell/loaded.tsx'

/** Key directories of agents whose signatures the organization trusts. */
export function AgentDirectories() {
  const path = `${organizationPath()}/agent-directories`
  const response = useResponse<{ data: AgentDirectory[] }>(path)
  const { dialog, show } = useFormDialog()
  const mayManage = hasScope('organizations:update')
  const add = () =>
    show({
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
    show({
      title: `Remove ${domain}?`,
      action: 'Remove',
      text: 'New sessions signed by its agents are no longer verified. Earlier decisions stay.',
      submit: () => callApi(`${path}/${encodeURIComponent(domain)}`, { method: 'DELETE' }),
    })
  return (
    <>
      {mayManage && (
        <div class="title">
          <span />
          <button type="button" class="button" onClick={add}>
            Add directory
          </button>
        </div>
      )}
      {dialog}
      <Loaded response={response}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="note">No agent directories. Well-known agents are verified without one.</p>
          ) : (
            <DataTable
              label="Agent directories"
              rows={data}
              keyOf={({ domain }) => domain}
              columns={[
                { title: 'Domain', class: 'mono', cell: ({ domain }) => domain },
                { title: 'Name', cell: ({ name, domain }) => name ?? domain },
                { title: 'Added', cell: ({ added_at }) => <RelativeTime at={added_at} /> },
                mayManage && {
                  title: 'Actions',
                  cell: ({ domain }) => (
                    <button
                      type="button"
                      aria-label={`Remove ${domain}`}
                      onClick={() => remove(domain)}
                    >
                      Remove
                    </button>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
      <ApiRequest paths={[path]} />
    </>
  )
}
