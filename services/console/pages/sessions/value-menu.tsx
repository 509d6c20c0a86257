import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { hrefWith } from '../shared/address.ts'
import { CopyButton } from '../shared/copy.tsx'
import {
  type Field,
  filterChanges,
  filterTitles,
  parseFilters,
  type UrlFilter,
  withFilter,
  withOnlyFilter,
} from './fields.ts'

interface ValueMenuProps {
  query: URLSearchParams
  field: Field
  value: string | null | undefined
  title?: string | null | undefined
  /** Content of the button. Default: the value. */
  children?: ComponentChildren
}

/** A value with a menu: filter by it, exclude it, or copy it. */
export function ValueMenu({ query, field, value, title, children }: ValueMenuProps) {
  const [isOpen, setOpen] = useState(false)
  if (!value) return null
  return (
    <>
      <button
        type="button"
        class="value"
        aria-expanded={isOpen}
        title={title ?? undefined}
        onClick={() => setOpen(true)}
      >
        {children ?? value}
      </button>
      {isOpen && <Menu {...{ query, field, value }} onClose={() => setOpen(false)} />}
    </>
  )
}

interface MenuProps {
  query: URLSearchParams
  field: Field
  value: string
  onClose: () => void
}

function Menu({ query, field, value, onClose }: MenuProps) {
  const filters = parseFilters(query)
  const hrefTo = (filters: readonly UrlFilter[]) => hrefWith(filterChanges(filters))
  return (
    <section
      class="value-menu panel"
      popover="auto"
      ref={showBelow}
      aria-label={`${filterTitles[field]} ${value}`}
      onToggle={({ newState }) => newState === 'closed' && onClose()}
    >
      <a href={hrefTo(withOnlyFilter(filters, { field, value, isNot: false }))} onClick={closeMenu}>
        Only this
      </a>
      <a href={hrefTo(withFilter(filters, { field, value, isNot: true }))} onClick={closeMenu}>
        Not this
      </a>
      <CopyButton text={value} />
    </section>
  )
}

const closeMenu = ({ currentTarget }: { currentTarget: HTMLElement }) =>
  currentTarget.closest<HTMLElement>('[popover]')?.hidePopover()

const margin = 8

// Not defined in the component, where each render would show the menu again.
function showBelow(menu: HTMLElement | null): void {
  const value = menu?.previousElementSibling?.getBoundingClientRect()
  if (!menu || !value) return
  menu.showPopover()
  const rightmost = document.documentElement.clientWidth - menu.offsetWidth - margin
  menu.style.left = `${Math.max(margin, Math.min(value.left, rightmost)) + window.scrollX}px`
  menu.style.top = `${value.bottom + window.scrollY}px`
  menu.scrollIntoView({ block: 'nearest' })
  menu.querySelector('a')?.focus()
}
