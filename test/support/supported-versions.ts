/** Oldest and newest versions in the docs, on which the log is tested. */
export const supported = { kafka: ['3.9.2', '4.4.0'], postgresql: ['15', '18'] } as const
