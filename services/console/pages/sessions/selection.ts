import { useState } from 'preact/hooks'

export interface Selection {
  ids: readonly string[]
  /** True if the rows were selected while a session was open, so Esc clears them first. */
  isNewest: boolean
  has: (id: string) => boolean
  set: (ids: readonly string[]) => void
  /** Selects or deselects a row, with `isRange` all rows from the one toggled last. */
  toggle: (id: string, options: { ids: readonly string[]; isRange: boolean }) => void
}

/** Returns the selected rows of a list. */
export function useSelection(openSessionId: string | null): Selection {
  const [selected, setSelected] = useState<readonly string[]>([])
  const [isNewest, setNewest] = useState(false)
  const [last, setLast] = useState('')
  const set = (ids: readonly string[]) => {
    if (selected.length === 0) setNewest(openSessionId !== null)
    setSelected(ids)
  }
  const has = (id: string) => selected.includes(id)
  return {
    ids: selected,
    isNewest,
    has,
    set,
    toggle(id, { ids, isRange }) {
      const [from, to] = [isRange ? ids.indexOf(last) : -1, ids.indexOf(id)]
      const range = from < 0 ? [id] : ids.slice(Math.min(from, to), Math.max(from, to) + 1)
      const others = selected.filter((other) => !range.includes(other))
      set(has(id) ? others : [...others, ...range])
      setLast(id)
    },
  }
}
