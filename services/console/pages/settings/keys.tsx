import { defaultScopes, scopes } from '../../../../infra/access/principal.ts'
import type { ApiKey } from '../../../organizations/schemas.ts'
import { currentPage, hrefWith } from '../shared/address.ts'
import { callApi } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { CopyButton } from '../shared/copy.tsx'
import { type FormBody, type FormDialogProps, Secret } from '../shared/form-dialog.tsx'
import { formatDateTime } from '../shared/format.ts'
import { ActionMenu } from '../shared/menu.tsx'
import { ListTable, usePages } from '../shared/pages.tsx'
import { hasScope, organizationPath, person } from '../shared/person.ts'
import { now } from '../shared/span.ts'
import { RelativeTime } from '../shared/values.tsx'

const keysPath = () => `${organizationPath()}/api-keys`

/** Returns all keys, as a list with its API path, and those of the current environment. */
export function useKeys() {
  const path = `${keysPath()}?limit=200`
  const list = usePages<ApiKey>(path)
  const keys = list.rows.filter(({ environment }) => environment === currentPage.value?.environment)
  return { path, list, keys }
}

const isRevoked = ({ status }: ApiKey): boolean => status === 'revoked'

export const isForPages = (key: ApiKey): boolean =>
  !isRevoked(key) && key.type === 'publishable' && key.client_target === 'browser'

export function Keys({ query }: { query: URLSearchParams }) {
  const { path, list, keys } = useKeys()
  const showsRevoked = query.has('revoked')
  const mayManage = hasScope('api_keys:manage')
  const revokedCount = keys.filter(isRevoked).length
  return (
    <>
      <div class="title">
        <span>
          {revokedCount > 0 && (
            <a href={hrefWith({ revoked: showsRevoked ? null : 'true' })}>
              {showsRevoked ? 'Hide revoked keys' : `Show revoked keys (${revokedCount})`}
            </a>
          )}
        </span>
        {mayManage && <CreateKey />}
      </div>
      <ListTable
        label="Keys"
        list={{ ...list, rows: keys.filter((key) => showsRevoked || !isRevoked(key)) }}
        keyOf={({ id }) => id}
        columns={{
          Name: { class: 'clip', cell: ({ name }) => name },
          Type: ({ type, client_target }) =>
            type === 'secret' ? 'secret' : `publishable, ${client_target}`,
          Key: (key) => <KeyText {...key} />,
          Status: (key) => <KeyStatus {...key} />,
          'Scopes or origins': {
            class: 'clip',
            cell: (key) =>
              isForPages(key) && !key.allowed_origins?.length ? (
                <span class="badge warn">Any origin</span>
              ) : (
                (key.scopes ?? key.allowed_origins ?? []).join(', ')
              ),
          },
          'Last used': (key) => <LastUse {...key} />,
          Actions: mayManage && ((key) => isRevoked(key) || <KeyActions apiKey={key} />),
        }}
      />
      <ApiRequest paths={[path]} />
    </>
  )
}

function KeyText({ display_key, key_preview }: ApiKey) {
  return (
    <>
      <span class="mono">{key_preview}</span>{' '}
      {display_key && <CopyButton text={display_key} class="plain" />}
    </>
  )
}

const soonMs = 14 * 24 * 60 * 60 * 1000

function KeyStatus({ status, revoked_reason: reason, ...key }: ApiKey) {
  if (status === 'revoked')
    return <span class="badge">{reason === 'expired' ? 'Expired' : 'Revoked'}</span>
  const ends = [key.grace_expires_at, key.expires_at].filter((time) => time !== null)
  const end = ends.toSorted()[0]
  if (end === undefined) return <span class="badge good">Active</span>
  return (
    <span class={`badge ${Date.parse(end) > now.value + soonMs ? 'good' : 'warn'}`}>
      Ends <RelativeTime at={end} />
    </span>
  )
}

function LastUse({ last_used_at: at }: ApiKey) {
  if (at) return <RelativeTime at={at} />
  const causes = "Check the allowed origins, the page's consent, and whether the script is blocked"
  return <span title={causes}>never</span>
}

const nameField = (value?: string) => ({ name: 'name', label: 'Name', value })
const originsField = (value?: readonly string[] | null) => ({
  name: 'allowed_origins',
  label: 'Allowed origins',
  hint: 'One per line, such as https://shop.example or https://*.shop.example. Empty: any origin.',
  isList: true,
  value,
})
const scopesField = (value: readonly string[]) => ({
  name: 'scopes',
  label: 'Scopes',
  choices: scopes.filter(hasScope),
  value,
})
const expiryField = (hint: string, value?: string | null) => ({
  name: 'expires_at',
  label: 'Expires',
  type: 'datetime-local' as const,
  hint: `In your time zone. ${hint}`,
  value,
})

interface IssuedKey {
  data: Pick<ApiKey, 'expires_at'> & { revealed_key: string }
}
const issuedKey = ({ data: { revealed_key, expires_at: end } }: IssuedKey) => (
  <>
    <Secret value={revealed_key} />
    {end && <p>Expires {formatDateTime(end)}</p>}
  </>
)

const platformField = {
  name: 'client_target',
  label: 'Platform',
  options: ['native-ios', 'native-android'],
}
const kinds = [
  { title: 'Key for web pages', type: 'publishable', field: () => originsField() },
  { title: 'Key for apps', type: 'publishable', field: () => platformField },
  { title: 'Secret key', type: 'secret', field: () => scopesField(defaultScopes) },
]

const createForm = ({ title, type, field }: (typeof kinds)[number]): FormDialogProps => ({
  title,
  action: 'Create key',
  fields: [
    nameField(),
    {
      name: 'environment',
      label: 'Environment',
      options: person.value?.environments ?? [],
      value: currentPage.value?.environment,
    },
    field(),
    expiryField('Empty: the maximum lifetime of your organization, or never.'),
  ],
  submit({ expires_at, ...settings }) {
    const body = { ...settings, type, ...(expires_at && { expires_at }) }
    return callApi<IssuedKey>(keysPath(), { method: 'POST', body }).then(issuedKey)
  },
})

const CreateKey = () => (
  <ActionMenu
    label="Create key"
    class="menu button"
    items={kinds.map((kind) => ({ label: kind.title, action: createForm(kind) }))}
  />
)

function KeyActions({ apiKey }: { apiKey: ApiKey }) {
  const { id, name, type, status, scopes, expires_at } = apiKey
  const path = `${keysPath()}/${id}`
  const edit = {
    title: `Edit ${name}`,
    action: 'Save',
    fields: [
      nameField(name),
      ...(scopes ? [scopesField(scopes)] : []),
      ...(isForPages(apiKey) ? [originsField(apiKey.allowed_origins)] : []),
      expiryField('Empty: never.', expires_at),
    ],
    submit: (body: FormBody) => callApi(path, { method: 'PATCH', body }),
  }
  const rotate = {
    title: `Rotate ${name}?`,
    action: 'Rotate',
    text: 'Creates a key with the same settings and lifetime. The current key works for another 24 hours: replace it everywhere by then.',
    submit: () => callApi<IssuedKey>(`${path}/rotations`, { method: 'POST' }).then(issuedKey),
  }
  const revoke = {
    title: `Revoke ${name}?`,
    action: 'Revoke',
    typed: name,
    text: `${type === 'secret' ? 'Requests with this key fail' : 'Pages and apps with this key stop sending sessions'} within 15 seconds. This can't be undone.`,
    submit: () => callApi(path, { method: 'DELETE' }),
  }
  return (
    <ActionMenu
      class="plain"
      label="⋯"
      name={`Actions for ${name}`}
      items={[
        { label: 'Edit', action: edit },
        status === 'active' && { label: 'Rotate', action: rotate },
        { label: 'Revoke', class: 'danger', action: revoke },
      ]}
    />
  )
}
