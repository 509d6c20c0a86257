import { useMemo } from 'preact/hooks'
import { hrefWith, navigate } from './address.ts'
import { isoTime, now, spanOf } from './span.ts'

/**
 * Returns the API path of a list with the period and the filters in the URL. A relative period keeps its start while the
 * list is shown, because cursors depend on it.
 */
export function useFilteredPath(
  path: string,
  query: URLSearchParams,
  filters: readonly string[],
): string {
  const entryOf = (name: string) => [name, query.getAll(name)]
  return useMemo(() => {
    const { since, until, last } = spanOf(query, now.peek())
    const parameters = new URLSearchParams({ since: isoTime(since) })
    if (!last) parameters.set('until', isoTime(until))
    for (const name of filters)
      for (const value of query.getAll(name)) parameters.append(name, value)
    return `${path}?${parameters}`
  }, [path, JSON.stringify(['since', 'until', 'last', ...filters].map(entryOf))])
}

interface FilterSelectProps {
  /** Parameter in the URL. */
  name: string
  label: string
  /** A value with spaces stands for each of its words. */
  options: readonly (readonly [value: string, text: string])[]
  query: URLSearchParams
}

export function FilterSelect({ name, label, options, query }: FilterSelectProps) {
  return (
    <select
      aria-label={label}
      value={query.getAll(name).join(' ')}
      onChange={({ currentTarget: { value } }) =>
        navigate(hrefWith({ [name]: value ? value.split(' ') : null }))
      }
    >
      <option value="">All {label.toLowerCase()}</option>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  )
}
