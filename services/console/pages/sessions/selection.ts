import { useSignal } from '@preact/signals'
import { currentPage } from '../shared/address.ts'

/** Returns the id of the session in the drawer, also before the page is rendered. */
export const shownSessionId = (): string | null => currentPage.value?.query.get('open') ?? null

export interface Selection {
  /** Current ids, also before the page is rendered. */
  ids: () => readonly string[]
  /** Returns true if the rows were selected while a session was open, so Esc clears them first. */
  isNewest: () => boolean
  set: (ids: readonly string[]) => void
  /** Selects or deselects a row, with `isRange` all rows from the one toggled last. */
  toggle: (id: string, options: { ids: readonly string[]; isRange: boolean }) => void
}

/** Returns the selected rows of a list. */
export function useSelection(): Selection {
  const selected = useSignal<readonly string[]>([])
  const isNewest = useSignal(false)
  const last = useSignal('')
  const set = (ids: readonly string[]) => {
    if (selected.value.length === 0) isNewest.value = shownSessionId() !== null
    selected.value = ids
  }
  return {
    ids: () => selected.value,
    isNewest: () => isNewest.value,
    set,
    toggle(id, { ids, isRange }) {
      const [from, to] = [isRange ? ids.indexOf(last.value) : -1, ids.indexOf(id)]
      const range = from < 0 ? [id] : ids.slice(Math.min(from, to), Math.max(from, to) + 1)
      const others = selected.value.filter((other) => !range.includes(other))
      set(selected.value.includes(id) ? others : [...others, ...range])
      last.value = id
    },
  }
}
