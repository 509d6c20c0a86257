import { useSignal } from '@preact/signals'
import { currentPage, hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { useFocusOnClose, usePageKeys } from '../shared/keys.ts'

/** Returns the id of the session in the drawer, also before the page is rendered. */
export const shownSessionId = (): string | null => currentPage.value?.query.get('open') ?? null

export type Selection = ReturnType<typeof useSelection>

/** Returns the selected rows of a list. Signals also have their current values before the page is rendered. */
export function useSelection() {
  const ids = useSignal<readonly string[]>([])
  // True if the rows were selected while a session was open, so Esc clears them first.
  const isNewest = useSignal(false)
  const last = useSignal('')
  const set = (selected: readonly string[]) => {
    if (ids.value.length === 0) isNewest.value = shownSessionId() !== null
    ids.value = selected
  }
  /** Selects or deselects a row, with `isRange` all rows from the one toggled last. */
  const toggle = (id: string, { all, isRange }: { all: readonly string[]; isRange: boolean }) => {
    const [from, to] = [isRange ? all.indexOf(last.value) : -1, all.indexOf(id)]
    const range = from < 0 ? [id] : all.slice(Math.min(from, to), Math.max(from, to) + 1)
    const others = ids.value.filter((other) => !range.includes(other))
    set(ids.value.includes(id) ? others : [...others, ...range])
    last.value = id
  }
  return { ids, isNewest, set, toggle }
}

const focusRow = (id: string) =>
  document.querySelector<HTMLElement>(`tr[data-id="${CSS.escape(id)}"] .open`)?.focus()

/** Shows a session in the drawer. Going back closes it, regardless of how many were shown. */
export const showSession = (id: string): void =>
  navigate(hrefWith({ open: id }), { replace: shownSessionId() !== null })

/** Moves through the rows with `j` and `k`, and opens, selects and closes by keys. The focus is the current row. */
export function useRowKeys(ids: readonly string[], selection: Selection): void {
  usePageKeys(
    (event) => {
      const { key, shiftKey, target } = event
      const element = target instanceof Element ? target : document.body
      const shown = shownSessionId()
      const current = element.closest<HTMLElement>('tr[data-id]')?.dataset.id ?? shown
      const step = { j: 1, k: -1 }[key]
      const next = step && ids[current ? ids.indexOf(current) + step : 0]
      if (next) {
        focusRow(next)
        if (shown) showSession(next)
      }
      if (
        key === 'Escape' &&
        selection.ids.value.length > 0 &&
        (!shown || selection.isNewest.value)
      )
        selection.set([])
      else if (key === 'Escape' && shown) navigate(hrefWith({ open: null }))
      if (!current) return
      if (key === 'x') selection.toggle(current, { all: ids, isRange: false })
      if (key === 'Enter' && shiftKey) {
        event.preventDefault()
        navigate(hrefOf({ page: 'sessions', id: current }))
      } else if (key === 'Enter' && element.matches('body, #main, [type="checkbox"]'))
        showSession(current)
    },
    [ids.join()],
  )
  useFocusOnClose(shownSessionId(), focusRow)
}
