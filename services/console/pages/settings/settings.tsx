import './settings.css'
import { Alerts } from '../sessions/alerts.tsx'
import { hrefOf } from '../shared/address.ts'
import { person } from '../shared/person.ts'
import { AgentDirectories } from './agent-directories.tsx'
import { AuditLog } from './audit-log.tsx'
import { DataAndLimits } from './data.tsx'
import { GateSettings } from './gate.tsx'
import { Install } from './install.tsx'
import { Keys } from './keys.tsx'
import { People } from './people.tsx'

const tabs = [
  { name: 'keys', title: 'Keys', Content: Keys },
  { name: 'install', title: 'Install', Content: Install },
  { name: 'agents', title: 'Agent directories', Content: AgentDirectories },
  { name: 'gate', title: 'Gate', Content: GateSettings },
  { name: 'alerts', title: 'Alerts', Content: Alerts },
  { name: 'data', title: 'Data and limits', Content: DataAndLimits },
  { name: 'people', title: 'People', Content: People },
  { name: 'audit', title: 'Audit log', Content: AuditLog },
] as const

export function SettingsPage({ query }: { query: URLSearchParams }) {
  const shown = tabs.filter(({ name }) => name !== 'people' || person.value?.role === 'admin')
  const current = shown.find(({ name }) => name === query.get('tab')) ?? tabs[0]
  return (
    <>
      <h1>Settings</h1>
      <nav class="row tabs" aria-label="Settings">
        {shown.map(({ name, title }) => (
          <a
            key={name}
            href={hrefOf({ page: 'settings', query: new URLSearchParams({ tab: name }) })}
            aria-current={name === current.name ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <current.Content query={query} />
    </>
  )
}
